// Coordinator: what ps 0 does beyond owning a range: it leads a run through its phases, from waiting for its
// tasks (gathering.h) over the first weights (restore.h) and the steps (step_desk.h) to its results
// (run_end.h), and answers the requests that only ps 0 answers. Every answer is made again from state when a
// request is repeated. Owner: PsServer. Thread: the ps loop. Order of messages: docs/wire.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/peer/form_message.h"
#include "trainer/ps/evaluations.h"
#include "trainer/ps/loss_policy.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/restore.h"
#include "trainer/ps/round_desk.h"
#include "trainer/ps/run_end.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/run_phase.h"
#include "trainer/ps/run_positions.h"
#include "trainer/ps/run_stop.h"
#include "trainer/ps/setback.h"
#include "trainer/ps/standings.h"
#include "trainer/ps/start_barrier.h"
#include "trainer/ps/start_desk.h"
#include "trainer/ps/step_desk.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

class SaveDesk;

class Coordinator {
 public:
  // `history`: what this run was before it went back to a checkpoint, if it did.
  Coordinator(const Config& config, Membership& members, Outbox& outbox, Logger& log, RunHistory& history);
  // Where a worker that is told to start begins is for the update rule to say. Set before anything is
  // handled.
  void set_start_point(std::function<StartPoint(Member&)> start_point) {
    starts_.set_start_point(std::move(start_point));
  }

  // Has every ps fill its range, and then calls OnFilled(); `again`: with the run's newest checkpoint.
  // `data`: what a worker says of its data; unset: nothing. Set before anything is handled.
  void set_fill(std::function<void(bool again, const std::optional<DataFacts>& data)> fill) {
    fill_ = std::move(fill);
  }
  void OnFilled(const StartedFrom& from);
  // Lets no more steps be taken than are granted. Set before anything is handled.
  void set_end_early(std::function<void()> end_early) { end_early_ = std::move(end_early); }
  // Null: no checkpoints. Set before anything is handled.
  void set_saves(SaveDesk* saves);
  // The rule begins at the global step of a checkpoint. Set before anything is handled.
  void set_begin_at(std::function<void(int64_t)> begin_at) { begin_at_ = std::move(begin_at); }
  // What ps 0 reports of its own final weights. Set before anything is handled.
  void set_own_report(std::function<ShardReport()> own_report) { end_.set_own_report(std::move(own_report)); }
  // Called when the workers are told to start, after a rollback again; may be empty.
  void set_on_begun(std::function<void()> on_begun) { on_begun_ = std::move(on_begun); }

  // One request of the kinds that only ps 0 answers. False: not one of those.
  bool Handle(Member& member, const wire::Envelope& request);
  // Whether `member` has a step to take; in sync that is for its round to say.
  bool MayStep(const Member& member) const {
    const Standing& standing = standings_.Of(member);
    return sync() ? phase_ == RunPhase::kRunning && !standing.done : standing.open_steps > 0;
  }
  // A gradient of `member` was applied: one global step. Not for sync.
  void StepApplied(const Member& member, int64_t examples);
  // sync: a round was applied: one global step, to which members gave `examples`.
  void RoundApplied();
  void CountExamples(const Member& member, int64_t examples) {
    standings_.Of(member).result.examples += examples;
  }
  // A whole gradient of `member` counts now. How many steps it is granted with the answer: 1, or 0 near the
  // end of the run.
  uint32_t GrantNext(const Member& member) {
    evaluations_.OnStep(member);
    return steps_.GrantNext(member);
  }
  // The local step behind which an answer asks the worker to evaluate; 0: none.
  uint64_t EvaluationDueFor(const Member& member) const { return evaluations_.DueFor(member); }
  // ps 0, from another ps.
  void OnChecksums(const Member& ps, const wire::ChecksumList& list) { end_.OnChecksums(ps, list); }
  // sync: tells the other ps of rounds.
  RoundDesk& desk() { return desk_; }
  // No more steps than are granted now, or `rounds` in all (sync).
  void EndEarly(std::optional<int64_t> rounds = std::nullopt) { steps_.EndEarly(rounds); }
  // A task is gone, or was replaced, or begins its conversation anew: its open steps are granted again.
  void Left(const Member& member);
  // What the loss of this task means for the run now.
  Loss WhatIfLost(const Member& member) const;
  // The run goes back to a checkpoint now: notes in the history where it was.
  void NoteLoss();

  // Deadlines of the start and of lost workers, and the start's status line. Throws PeerLost naming who is
  // missing.
  void Tick(TimePoint now);
  // "joined 3 of 5; missing: ps 1 (10.0.0.2:9001)" until the start; then empty.
  std::string Status() const { return phase_ == RunPhase::kJoining ? barrier_.Status() : std::string(); }

  int64_t global_step() const { return steps_.applied(); }
  // That ps reads and writes in the checkpoint.dir of ps 0 itself.
  bool SeesDirectory(const Member& ps) const { return standings_.Of(ps).sees_directory; }
  // As tasks are told.
  KnownCheckpoint newest_checkpoint() const { return history_.Newest(); }
  // The run waits for those that it needs, or for the first weights.
  bool starting() const { return phase_ == RunPhase::kJoining || phase_ == RunPhase::kInitialising; }
  // A signal asks the run to end: it is saved, and then Tick() throws RunStopped. Later signals change
  // nothing.
  void Stop(int signal);
  int stop_signal() const { return stop_.signal(); }
  // Where the workers are, as JSON.
  std::string PositionsNow() const { return positions_.Now(); }

  // Enough were here once, and the run is not over: from now on a lost ps cannot be replaced.
  bool begun() const { return phase_ == RunPhase::kInitialising || phase_ == RunPhase::kRunning; }
  // The run is over, and everybody knows or has had time to ask.
  bool Finished(TimePoint now) const { return phase_ == RunPhase::kEnded && end_.Finished(now); }
  const RunSummary& summary() const { return end_.summary(); }

 private:
  void OnReady(Member& member, uint64_t request, const wire::Ready& ready);
  void LearnOfReturning(const Member& member, const wire::Ready& ready);
  void LearnOfData(const Member& member, const wire::DataFacts& said);
  void BeginWhenEnoughAreReady();
  void TakeStart(const StartedFrom& from);
  void StartAll();
  void Start(Member& member, uint64_t request);
  void AfterStep();
  void OnDone(Member& member, uint64_t request, const wire::Done& done);
  void OnEvaluated(const Member& member, uint64_t request, const wire::Evaluated& said);
  void CloseWhenAllDone(TimePoint now);
  // All that are here are done, but steps are left to one that was lost.
  bool MayGoOn() const;
  void OnWaitEnd(const Member& member, uint64_t request, const wire::WaitEnd& question);
  void OnSaved(const std::string& error);
  void EndWhenComplete(TimePoint now);
  [[noreturn]] void EndStopped(const std::string& unsaved) const;
  bool sync() const { return config_.train.mode == TrainMode::kSync; }

  const Config& config_;
  Membership& members_;
  Outbox& outbox_;
  Logger& log_;
  RunHistory& history_;
  std::function<void()> on_begun_;
  std::function<void(int64_t)> begin_at_;
  std::function<void(bool, const std::optional<DataFacts>&)> fill_;
  std::function<void()> end_early_;
  SaveDesk* saves_ = nullptr;
  RunPhase phase_ = RunPhase::kJoining;
  Standings standings_;
  Setback setback_;
  StartBarrier barrier_;
  RunPositions positions_;
  Evaluations evaluations_;
  StepDesk steps_;
  StartDesk starts_;
  RoundDesk desk_;
  RunStop stop_;
  RunEnd end_;
  std::optional<DataFacts> data_;  // what the lowest worker says of its data
  int data_from_ = 0;              // which worker that is
  bool all_done_ = false;          // no worker takes another step
  bool disturbed_ = false;         // rounds went on without a worker that was lost or came later
};

}  // namespace dtrain
