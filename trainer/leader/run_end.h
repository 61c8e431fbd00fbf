// RunEnd: ends a run for the leader. When every worker is done it asks each ps for its report
// (shard_report.h) and one worker to evaluate the final weights. It makes the run's summary from their
// answers and the workers' Done, sends it to each task that asks for the end, and stays until all have it.
// Owner: LocalLeader. Thread: the ps loop. docs/wire.md: Order, Report, Grant, End.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/leader/evaluations.h"
#include "trainer/model/layout.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"
#include "trainer/shard/shard_report.h"

namespace dtrain {

class RunEnd {
 public:
  RunEnd(const Config& config, const Layout& layout, TaskTable& members, const Evaluations& evaluations,
         const RunHistory& history, Outbox& outbox, Logger& log);

  // Every worker is done: asks for the reports and the evaluation; Tick() repeats the unanswered questions.
  void Begin(TimePoint now);
  // The report of ps 0 itself. This and OnChecksums() throw Failure (diverged) when a final weight is not
  // finite and hooks.stop_on_nan is set.
  void TakeOwn(ShardReport own) { TakeReport(0, std::move(own)); }
  bool lacks_own() const { return begun_ && !reports_[0]; }
  void Tick(TimePoint now);
  void OnChecksums(const Member& ps, const wire::ChecksumList& list);
  // False: this worker was not asked, or the figures are here already.
  bool OnEvaluated(const Member& worker, const wire::Evaluated& said);
  // A worker without a next step asks for the end; it may be the one that evaluates.
  void OnWorkerWaits(const Member& worker);
  // All answers are here.
  bool Complete() const { return begun_ && missing_reports_ == 0 && !evaluating_; }

  // What the run has reached.
  struct Reached {
    int64_t global_step = 0;
    int64_t other_examples = 0;       // of workers that are gone
    int64_t first_applied_nanos = 0;  // wall clock of the first update; 0: none
    bool disturbed = false;           // RunHistory::disturbed
    std::optional<double> progressive_loss;
  };
  // Sends the summary to each task that has asked for the end or asks from now on. Call it after Complete().
  void Tell(const Reached& reached, TimePoint now);
  void Send(const Member& member);
  // Tells the ps that holds the replica of ps 0 when all others know the end.
  void TellHolder(TimePoint now);
  // Every task knows the end or has had time to ask.
  bool Finished(TimePoint now) const;
  const RunSummary& summary() const { return summary_; }

  // Reports are asked for again.
  template <typename Archive>
  void State(Archive& archive) {
    std::string so_far = begun_ && !archive.reads() ? ToWireJson(summary_) : "";
    archive(begun_, evaluating_, evaluator_, so_far, summary_json_, told_at_);
    if (archive.reads() && begun_) FromWireJson(so_far, &summary_);
  }

 private:
  bool HoldsRun(const Member& member) const;
  bool IsOf(size_t ps, const wire::ChecksumList& list) const;
  bool AreOfRows(size_t ps, const wire::ChecksumList& list, flatbuffers::uoffset_t first) const;
  void TakeReport(size_t ps, ShardReport report);
  void CheckFinite() const;
  void AskPs();
  void AskForEvaluation();
  void SumUpShards();
  void CheckLearned(const Reached& reached) const;
  void SumUpWorkers(const Reached& reached);
  bool TookPart(const Member& member) const;

  const Config& config_;
  const Layout& layout_;
  TaskTable& members_;
  const Evaluations& evaluations_;
  const RunHistory& history_;
  Outbox& outbox_;
  Logger& log_;
  bool begun_ = false;
  std::vector<std::optional<ShardReport>> reports_;  // by ps
  size_t missing_reports_ = 0;
  TimePoint next_question_;
  bool evaluating_ = false;  // the figures of the final weights are missing
  int evaluator_ = -1;       // the worker that was asked for them; -1: none yet
  RunSummary summary_;
  std::string summary_json_;
  bool told_misfit_ = false;  // a report was not of its ps's part of the model
  bool told_holder_ = false;
  TimePoint told_at_;
};

}  // namespace dtrain
