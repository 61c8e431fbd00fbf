// Summaries: the curves that TensorBoard draws of a run, as a worker, ps 0 and dtrain eval --follow leave
// them. docs/summaries.md explains the tags.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_histogram.h"
#include "base/signals.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/summary/event_writer.h"

namespace dtrain {

// Schedule: at which steps of a task its summaries get a point: summary.every_steps and summary.every_secs.
// Thread: the owner's.
class Schedule {
 public:
  explicit Schedule(const SummaryConfig& config) : every_steps_(config.every_steps) {
    if (config.every_secs <= 0) return;
    const std::chrono::duration<double> seconds(config.every_secs);
    timer_.emplace(std::chrono::duration_cast<Clock::duration>(seconds), Clock::now());
  }

  // Whether this step gets a point. Called once for each step, in order.
  bool Due(int64_t step) {
    const bool by_time = timer_ && timer_->Due();
    return by_time || (every_steps_ > 0 && step % every_steps_ == 0);
  }

 private:
  const int64_t every_steps_;
  std::optional<PacedTimer> timer_;
};

// One local step, as its gradient was computed.
struct StepFigures {
  int64_t global_step = 0;
  float loss = 0;
  int64_t correct = 0;  // of `rows`, where the model classifies
  int64_t rows = 0;
  std::optional<HistogramFigures> staleness;  // since the point before; unset: no gradient was answered since
};

// WorkerSummary: what a worker leaves in summary.dir: curves of its training; the chief also the model's
// graph and the final evaluation. Owner and thread: the worker.
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
  // Counts the rows of every step.
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
  TimePoint point_at_;  // of the point before
  int64_t point_step_ = 0;
  int64_t examples_ = 0;  // since then
};

// PsSummary: what ps 0 leaves in summary.dir/ps-0: the pace of the whole run and how many workers take part.
// Owner: PsServer. Thread: the ps loop.
class PsSummary {
 public:
  // Null without summary.dir. Throws UserError or IoError where the directory cannot be written.
  static std::unique_ptr<PsSummary> Open(const Config& config, ExitHooks& hooks, Logger& log);

  // The update that made `global_step` was applied: whether OnUpdate() is to be told.
  bool Due(int64_t global_step) {
    if (point_step_ == 0) Begin(global_step);
    return schedule_.Due(global_step);
  }
  void OnUpdate(int64_t global_step, int workers);

 private:
  PsSummary(const Config& config, ExitHooks& hooks, Logger& log);
  void Begin(int64_t global_step);  // the pace counts from here

  EventWriter writer_;
  Schedule schedule_;
  TimePoint point_at_;      // of the point before
  int64_t point_step_ = 0;  // 0: none
};

// EvaluationCurves: what dtrain eval --follow leaves of the checkpoints that it evaluates, in a folder of its
// own. Owner: the command. Thread: one.
class EvaluationCurves {
 public:
  // Throws UserError or IoError where the directory cannot be written.
  explicit EvaluationCurves(const std::string& directory)
      : log_("evaluator", LogOptions()), writer_(directory, hooks_, log_) {}

  void Add(int64_t global_step, const Evaluation& evaluation, std::optional<double> auc) {
    writer_.Add("eval/loss", evaluation.loss());
    if (evaluation.classifies) writer_.Add("eval/accuracy", evaluation.accuracy());
    if (auc) writer_.Add("eval/auc", *auc);
    writer_.WriteScalars(global_step, Clock::now());
    writer_.Flush();
  }

 private:
  Logger log_;
  ExitHooks hooks_;
  EventWriter writer_;
};

}  // namespace dtrain
