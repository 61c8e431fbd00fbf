// WorkerSummary: what a worker leaves for TensorBoard in summary.dir: curves of its training; the chief also
// the model's graph and the final evaluation. docs/summaries.md explains the tags.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_histogram.h"
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
  std::optional<HistogramFigures> staleness;  // since the point before; unset: no gradient was answered since
};

class WorkerSummary {
 public:
  // Null without summary.dir. `device`: what the worker computes on, "gpu:0". Throws UserError or IoError
  // where the directory cannot be written.
  static std::unique_ptr<WorkerSummary> Open(const Config& config, int index, const std::string& device,
                                             const Layout& layout, ExitHooks& hooks, Logger& log);

  // Training begins: the time until here was start-up.
  void Begin(int64_t global_step);
  // Before the gradient of a local step: whether its figures are to be gathered for OnStep().
  bool Due(int64_t local_step) {
    due_ = schedule_.Due(local_step) || due_;
    return due_;
  }
  // Whether a point may be written: with open exchanges a step can end before any answer has moved the global
  // step on, and a curve has one point for each. What is due waits for the next step.
  bool Moved(int64_t global_step) const { return global_step > point_step_; }
  // Of every step.
  void CountExamples(int64_t rows) { examples_ += rows; }
  // Only where Due() and Moved().
  void OnStep(const StepFigures& step);
  void OnEvaluation(int64_t global_step, const Evaluation& evaluation);
  void Flush() { writer_.Flush(); }

 private:
  WorkerSummary(const Config& config, int index, const std::string& device, const Layout& layout,
                ExitHooks& hooks, Logger& log);

  const bool classifies_;
  EventWriter writer_;
  Schedule schedule_;
  bool due_ = false;
  // Of the point before.
  TimePoint point_at_;
  int64_t point_step_ = 0;
  int64_t examples_ = 0;  // since then
};

}  // namespace dtrain
