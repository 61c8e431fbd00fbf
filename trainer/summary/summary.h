// Summaries: the curves of a run for TensorBoard, written by workers, ps 0 and dtrain eval --follow.
// docs/summaries.md explains the tags.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/log_histogram.h"
#include "base/signals.h"
#include "trainer/config/run_config.h"
#include "trainer/config/train_config.h"
#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"
#include "trainer/summary/event_writer.h"

namespace dtrain {

// Schedule: at which steps of a task the curves get a point, by summary.every_steps and summary.every_secs.
// After each kPointsInARow points by steps their distance doubles, so that event files grow with the
// logarithm of a run's length: a week of 20,000 steps/s has a million points and not 120 million. Thread: the
// owner's.
class Schedule {
 public:
  static constexpr int64_t kPointsInARow = 100000;

  explicit Schedule(const SummaryConfig& config) : every_steps_(config.every_steps) {
    if (config.every_secs <= 0) return;
    const std::chrono::duration<double> seconds(config.every_secs);
    timer_.emplace(std::chrono::duration_cast<Clock::duration>(seconds), Clock::now());
  }

  // Whether this step gets a point. Call it once for each step, in order.
  bool Due(int64_t step) {
    const bool by_time = timer_ && timer_->Due();
    const bool by_steps = every_steps_ > 0 && step % every_steps_ == 0;
    if (by_steps && ++points_ == kPointsInARow) {
      every_steps_ *= 2;
      points_ = 0;
    }
    return by_time || by_steps;
  }

 private:
  int64_t every_steps_;
  int64_t points_ = 0;  // at this distance
  std::optional<PacedTimer> timer_;
};

// StepFigures: the figures of the local steps since the last point, each when its gradient was computed.
struct StepFigures {
  int64_t global_step = 0;
  double loss = 0;      // the mean over the rows, by their weights
  int64_t correct = 0;  // of `rows`, if the model classifies
  int64_t rows = 0;
  std::optional<HistogramFigures> staleness;  // since the last point; unset: no gradient was answered since
};

// EvaluationPoints: the figures of evaluations, each once: the final evaluation may be of a step that has
// been evaluated before. Owner and thread: those of the curves.
class EvaluationPoints {
 public:
  void Write(EvalOn set, int64_t global_step, const EvaluationFigures& figures, EventWriter* writer);

 private:
  std::array<std::optional<int64_t>, 2> at_;  // the last step of each set
};

// WorkerSummary: the curves of a worker's training in summary.dir; for the first worker also the learning
// rate, the model's graph, and the run's config and end (TensorBoard's Text and HParams). Owner and thread:
// the worker's.
class WorkerSummary {
 public:
  // Returns null without summary.dir. `device` is what the worker computes on, "gpu:0". Throws UserError or
  // IoError if the directory cannot be written.
  static std::unique_ptr<WorkerSummary> Open(const Config& config, int index, const std::string& device,
                                             const Layout& layout, ExitHooks& hooks, Logger& log);

  // Begins training, or goes back: the time before counts as start-up, and the steps after `global_step` are
  // taken anew.
  void Begin(int64_t global_step);
  // What schedule.decay_steps: auto is; 0: the config has a number.
  void set_decay_steps(int64_t decay_steps) { decay_steps_ = decay_steps; }
  // Whether a point is due. Call it once for each local step.
  bool Due(int64_t local_step) {
    due_ = schedule_.Due(local_step) || due_;
    return due_;
  }
  // Whether a point may be written. With several open exchanges a step can end before any answer has advanced
  // the global step, and a curve has one point per global step; the point then waits for the next step.
  bool Moved(int64_t global_step) const { return global_step > point_step_; }
  // Counts the rows of a step. Call it for every step.
  void CountExamples(int64_t rows) { examples_ += rows; }
  // Writes a point. Only if Due() and Moved() are true.
  void OnStep(const StepFigures& step);
  void OnEvaluation(EvalOn set, int64_t global_step, const EvaluationFigures& figures);
  void Flush() { writer_.Flush(); }
  // Writes how the run has ended, unless it was saved to go on: nothing then. Only the first call counts.
  void End(ExitCode code);

 private:
  WorkerSummary(const Config& config, int index, const std::string& device, const Layout& layout,
                ExitHooks& hooks, Logger& log);
  void WriteSession(const std::string& session);

  const std::string directory_;
  ExitHooks& hooks_;
  Logger& log_;
  const OptimizerConfig optimizer_;
  const OptimizerConfig linear_;  // of the linear part, where it has its own
  const bool has_two_;
  const bool saves_;  // there are checkpoints
  int64_t decay_steps_ = 0;
  const bool is_first_;
  const bool classifies_;
  const bool goes_on_;  // an earlier start has written here
  bool has_ended_ = false;
  EventWriter writer_;
  EvaluationPoints evaluations_;
  Schedule schedule_;
  bool due_ = false;
  TimePoint point_at_;  // of the last point
  int64_t point_step_ = 0;
  int64_t begun_at_ = 0;  // the step from which the run went on, or went back to
  int64_t examples_ = 0;  // since the last point
};

// PsSummary: the curves of ps 0 in summary.dir/ps-0: the pace of the whole run and the number of workers.
// Owner: PsRun. Thread: the ps loop.
class PsSummary {
 public:
  // Returns null without summary.dir. Throws UserError or IoError if the directory cannot be written.
  static std::unique_ptr<PsSummary> Open(const Config& config, ExitHooks& hooks, Logger& log);

  ~PsSummary();  // writes a point of the last step

  // The run begins or goes back, and the steps after `global_step` are taken anew. The pace counts from here.
  void Begin(int64_t global_step);
  // Call it for each step, in order.
  void OnStep(int64_t global_step, int workers) {
    step_ = global_step;
    workers_ = workers;
    if (schedule_.Due(global_step)) WritePoint();
  }

 private:
  PsSummary(const Config& config, ExitHooks& hooks, Logger& log);
  void WritePoint();

  EventWriter writer_;
  Schedule schedule_;
  int64_t step_ = 0;    // the last one
  int workers_ = 0;     // at that step
  TimePoint point_at_;  // of the last point
  int64_t point_step_ = 0;
};

// Returns a serialised GraphDef, for TensorBoard's Graphs tab, of one training step of the first worker
// (graph.cc): inputs, layers, loss, gradients and accuracy on the worker; each variable and its update on the
// ps that owns it, in parts if several do. The layers follow from the layout's variables weights/W1,
// biases/b1, weights/W2, ... Of wide_deep the rows of its table are tensors too, which the worker gathers
// from. `device` is that of the worker, "gpu:0". Thread: any.
std::string ModelGraph(const Config& config, const Layout& layout, const std::string& device);

// EvaluationCurves: the curves of dtrain eval --follow, in a directory of their own. Owner: the command.
// Thread: one.
class EvaluationCurves {
 public:
  // Throws UserError or IoError if the directory cannot be written.
  explicit EvaluationCurves(const std::string& directory)
      : log_("evaluator", LogOptions()), writer_(directory, hooks_, log_) {}

  void Add(EvalOn set, int64_t global_step, const EvaluationFigures& figures);

 private:
  Logger log_;
  ExitHooks hooks_;
  EventWriter writer_;
  EvaluationPoints points_;
  std::optional<int64_t> step_;  // of the last point
};

}  // namespace dtrain
