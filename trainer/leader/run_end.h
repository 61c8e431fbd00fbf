// RunEnd: the end of a run as the leader brings it about. When every worker is done it asks each ps for its
// report (shard_report.h) and one worker to evaluate the final weights; from these and from what the workers
// said with Done it makes the run's summary, sends it to everybody who asks for the end, and stays until they
// have it. Owner: LocalLeader. Thread: the ps loop. docs/wire.md: Checksums, Evaluate, End.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/leader/evaluations.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"
#include "trainer/shard/shard_report.h"

namespace dtrain {

class RunEnd {
 public:
  RunEnd(const Config& config, TaskTable& members, const Evaluations& evaluations, const RunHistory& history,
         Outbox& outbox, Logger& log);

  // Every worker is done; `own` is of the weights of ps 0. Asks for what is needed; Tick() asks again what is
  // not answered. Throws Failure (diverged) where a final weight is not finite and hooks.stop_on_nan is set.
  void Begin(ShardReport own, TimePoint now);
  void Tick(TimePoint now);
  // What another ps reports.
  void OnChecksums(const Member& ps, const wire::ChecksumList& list);
  // The figures of the final weights, from the worker that was asked for them.
  void OnEvaluated(const Member& worker, const wire::Evaluated& said);
  // A worker without a next step has asked for the end: it may be the one that evaluates.
  void OnWorkerWaits(const Member& worker);
  // All that was asked for is here.
  bool Complete() const { return begun_ && missing_reports_ == 0 && !evaluating_; }

  // What was reached by then.
  struct Reached {
    int64_t global_step = 0;
    int64_t other_examples = 0;       // of workers that are no more
    int64_t first_applied_nanos = 0;  // wall clock of the first update; 0: there was none
    bool disturbed = false;           // rounds went on without a worker
  };
  // The run is over: whoever has asked for its end, or asks from now on, gets the summary. After Complete().
  void Tell(const Reached& reached, TimePoint now);
  void Send(const Member& member);
  // Everybody knows or has had time to ask.
  bool Finished(TimePoint now) const;
  const RunSummary& summary() const { return summary_; }

 private:
  void TakeReport(size_t ps, ShardReport report);
  void CheckFinite() const;
  void AskPs();
  void AskForEvaluation();
  void SumUpShards();
  void SumUpWorkers(const Reached& reached);
  bool TookPart(const Member& member) const;

  const Config& config_;
  TaskTable& members_;
  const Evaluations& evaluations_;
  const RunHistory& history_;
  Outbox& outbox_;
  Logger& log_;
  bool begun_ = false;
  std::vector<std::optional<ShardReport>> reports_;  // by ps
  size_t missing_reports_ = 0;
  TimePoint next_question_;
  bool evaluating_ = false;  // a worker is asked for the final figures, or to be asked
  int evaluator_ = -1;       // which one was asked; -1: none yet
  RunSummary summary_;
  std::string summary_json_;
  TimePoint told_at_;
};

}  // namespace dtrain
