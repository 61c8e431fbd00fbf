// WorkerSummary: what a worker leaves for TensorBoard in summary.dir: curves of its training; the chief also
// the model's graph and the final evaluation. docs/summaries.md explains the tags.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/summary/event_writer.h"
#include "trainer/summary/schedule.h"

namespace dtrain {

// One local step, as its gradient was computed.
struct StepFigures {
  int64_t global_step = 0;
  float loss = 0;
  int64_t correct = 0;  // of `rows`, where the model classifies
  int64_t rows = 0;
  std::optional<double> staleness;  // mean since the point before; unset: no gradient was answered since
};

class WorkerSummary {
 public:
  // Null without summary.dir. Throws UserError or IoError where the directory cannot be written.
  static std::unique_ptr<WorkerSummary> Open(const Config& config, int index, const Layout& layout,
                                             ExitHooks& hooks, Logger& log);

  // Training begins: the time until here was start-up.
  void Begin(int64_t global_step);
  // Before the gradient of a local step: whether OnStep() is to be told its figures.
  bool Due(int64_t local_step) { return schedule_.Due(local_step); }
  // Of every step.
  void CountExamples(int64_t rows) { examples_ += rows; }
  void OnStep(const StepFigures& step);
  void OnEvaluation(int64_t global_step, const Evaluation& evaluation);
  void Flush() { writer_.Flush(); }

 private:
  WorkerSummary(const Config& config, int index, const Layout& layout, ExitHooks& hooks, Logger& log);

  const bool classifies_;
  EventWriter writer_;
  Schedule schedule_;
  // Of the point before.
  TimePoint point_at_;
  int64_t point_step_ = 0;
  int64_t examples_ = 0;  // since then
};

}  // namespace dtrain
