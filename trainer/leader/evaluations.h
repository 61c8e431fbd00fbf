// Evaluations: decides for the leader which worker evaluates and when (eval.every_steps, eval.at_end),
// whether the figures end the run (eval.patience), and which checkpoint is the best (eval.keep_best). The
// evaluator is the worker with the lowest index that takes part and has the rows. If that is so slow that
// another one passes ten multiples of eval.every_steps without an evaluation, the other one evaluates. When
// it is lost, the next one takes over from its own next step; an evaluation that was due then is dropped. The
// leader repeats a request until the figures arrive.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Returns the figures that an Evaluated has on one set; none if `text` is null or not valid.
EvaluationFigures FiguresIn(const flatbuffers::String* text);

class Evaluations {
 public:
  Evaluations(const Config& config, TaskTable& members, RunHistory& history, Logger& log);

  // The run starts, or goes on, at this global step; evaluations of later steps are forgotten. Warns when no
  // worker has the rows for the evaluations that the config wants. `best_saved`: with eval.keep_best the
  // score of the best checkpoint (ScoreOf()); infinity: there is none.
  void Begin(int64_t global_step, double best_saved);
  // Counts a gradient of `worker`, the last one in Member::taken.
  void OnStep(const Member& worker) {
    if (every_steps_ > 0 && worker.taken % every_steps_ == 0) AskFor(worker);
  }
  // That of a best checkpoint may not be, where a ps was lost that had a part of it.
  void set_best_saved(double score) { best_saved_ = score; }
  // The local step whose weights `worker` is asked to evaluate; 0: none.
  uint64_t DueFor(const Member& worker) const {
    return due_ != 0 && worker.task.index == evaluator_ ? static_cast<uint64_t>(due_) : 0;
  }

  struct Verdict {
    std::optional<EvaluationFigures> best;  // better than all before: save it as the best checkpoint
    std::string end;                        // why the run ends early; empty: it goes on
  };
  // Takes the figures of the evaluation that is due. Others, and repeated ones, change nothing. `kept`: the
  // weights that it was of can be saved.
  Verdict Take(const Member& worker, const wire::Evaluated& said, bool kept);
  // Takes the figures of the final weights. Returns them if eval.keep_best has these saved as the best.
  std::optional<EvaluationFigures> TakeFinal(const wire::Evaluated& said);
  template <typename Archive>
  void State(Archive& archive) {
    archive(evaluator_, due_, passed_, taken_from_, taken_, best_saved_, ended_);
  }
  // eval.patience is exhausted.
  bool ended() const { return ended_; }

  // The worker that evaluates the final weights when all workers are done: with data.split: feed worker 0,
  // which knows what it has fed, else the lowest connected worker that has the rows. Null: none.
  const Member* FinalEvaluator() const;

 private:
  void AskFor(const Member& worker);
  bool CanEvaluate(const Member& worker) const;
  // The figures on the set of eval.on.
  EvaluationFigures EvaluatedFigures(const wire::Evaluated& said) const;
  bool IsBest(const EvaluationFigures& figures);
  int Evaluator() const;

  const Config& config_;
  TaskTable& members_;
  RunHistory& history_;
  Logger& log_;
  const int64_t every_steps_;
  int evaluator_ = -1;
  int64_t due_ = 0;            // the local step that the evaluator has to evaluate; 0: none
  std::map<int, int> passed_;  // multiples of every_steps_ since the last evaluation, by worker
  // The worker and the local step of the latest figures: a worker that was lost after it sent them and comes
  // back is not asked for them again.
  int taken_from_ = -1;
  int64_t taken_ = 0;
  double best_saved_ = std::numeric_limits<double>::infinity();
  bool ended_ = false;
  bool told_none_ = false;  // that an evaluation has not the figure
};

}  // namespace dtrain
