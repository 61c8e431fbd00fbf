// Evaluations: the leader's part in evaluating: which worker evaluates and when (eval.every_steps,
// eval.at_end), what its figures mean for the run (eval.patience), and which checkpoint is the best
// (eval.keep_best). The job goes to the worker of the lowest index that takes part and has the rows of
// eval.on, and to the next one if that is lost. A job is asked for again until its figures are here. Owner:
// LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

// The figures of an evaluation; NaN: there is none.
struct EvaluationFigures {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

class Evaluations {
 public:
  Evaluations(const Config& config, TaskTable& members, RunHistory& history, Logger& log);

  // The workers are told to start, from this global step: what was evaluated behind it has not happened. Says
  // so where evaluations are wanted and nobody has the rows.
  void Begin(int64_t global_step);
  // A gradient of `worker` counts, the last one in Member::taken.
  void OnStep(const Member& worker) {
    if (every_steps_ > 0 && worker.taken % every_steps_ == 0) AskFor(worker);
  }
  // What an answer to this worker asks for: the local step whose weights it is to evaluate; 0: nothing.
  uint64_t DueFor(const Member& worker) const {
    return due_ != 0 && worker.task.index == evaluator_ ? static_cast<uint64_t>(due_) : 0;
  }

  struct Verdict {
    std::optional<EvaluationFigures> best;  // the smallest loss so far, to be kept as a checkpoint
    std::string end;                        // why the run ends early; empty: it goes on
  };
  // The figures of a job that is due; those of another, given twice, change nothing.
  Verdict Take(const Member& worker, const wire::Evaluated& said);
  // eval.patience is over.
  bool ended() const { return ended_; }

  // Who evaluates the final weights, all workers being done: the one of the lowest index that is here and has
  // the rows; with data.split: feed worker 0 in any case, which knows what it has fed. Null: nobody.
  const Member* FinalEvaluator() const;

 private:
  void AskFor(const Member& worker);
  int Evaluator() const;

  const Config& config_;
  TaskTable& members_;
  RunHistory& history_;
  Logger& log_;
  const int64_t every_steps_;
  int evaluator_ = -1;
  int64_t due_ = 0;  // the local step of the evaluator whose figures are to come; 0: none
  double best_saved_ = std::numeric_limits<double>::infinity();  // the loss of the best checkpoint
  bool ended_ = false;
};

}  // namespace dtrain
