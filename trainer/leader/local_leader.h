// LocalLeader: the leader of a run, on ps 0. It waits for the tasks (run_start.h), gives them their first
// weights (restore.h), grants steps and decides rounds (steps.h, rounds.h), and makes the results
// (run_end.h). It has checkpoints written (checkpoints.h), decides what the loss of a task means
// (recovery.h), and answers the requests that only ps 0 answers. A repeated request is answered again from
// the state.
// Owner: PsServer. Thread: the ps loop. Order of messages: docs/wire.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/archive.h"
#include "base/clock.h"
#include "trainer/leader/checkpoints.h"
#include "trainer/leader/evaluations.h"
#include "trainer/leader/leases.h"
#include "trainer/leader/lost_workers.h"
#include "trainer/leader/progressive_loss.h"
#include "trainer/leader/recovery.h"
#include "trainer/leader/replicas.h"
#include "trainer/leader/restore.h"
#include "trainer/leader/rounds.h"
#include "trainer/leader/run_data.h"
#include "trainer/leader/run_end.h"
#include "trainer/leader/run_start.h"
#include "trainer/leader/run_stop.h"
#include "trainer/leader/slow_workers.h"
#include "trainer/leader/status_report.h"
#include "trainer/leader/steps.h"
#include "trainer/peer/form_message.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/leader.h"

namespace dtrain {

class LocalLeader : public RunLedger, public Leader {
 public:
  // Throws UserError or PeerLost when checkpoint.dir cannot be written or belongs to another run.
  explicit LocalLeader(const LeaderParts& parts);

  RunLedger* ledger() override { return this; }
  RunId run() const override { return history_.run; }
  net::NodeId node() const override { return 0; }
  int64_t global_step() const override { return steps_.applied(); }

  bool MayStep(const Member& worker) const override {
    if (sync()) return phase_ == RunPhase::kRunning && !worker.done;
    return worker.open_steps > 0 && leases_.Has(worker);
  }
  void CountGradient(Member& worker, const wire::Push& push) override {
    leases_.Taken(worker, int64_t{push.examples()});
    worker.result.examples = AddCounts(worker.result.examples, int64_t{push.examples()});
    if (const auto loss = push.loss()) CountLoss(worker, push, *loss);
  }
  void StepApplied(Member& worker, const wire::Push& push) override;
  void StepTakenBefore(Member& worker) override {
    steps_.WasApplied(worker);
    leases_.Taken(worker, 0);
    steps_.ServeWaiting();
  }
  void StepDropped(Member& worker) override { leases_.Dropped(worker); }
  net::WeightsHead::Lease LeaseFor(const Member& worker) const override { return leases_.NewestFor(worker); }
  uint32_t GrantNext(Member& worker) override {
    leases_.Refill(worker);
    evaluations_.OnStep(worker);
    if (keeps_best() && evaluations_.DueFor(worker) != 0) checkpoints_->AskForCandidate(worker);
    return steps_.GrantNext(worker);
  }
  uint64_t EvaluationDueFor(const Member& worker) const override { return evaluations_.DueFor(worker); }

  // No round has an exchange from before the start, or of a worker that has not started: the rounds are
  // counted from there.
  void ExpectTogether(const flatbuffers::Vector<uint32_t>& workers) override {
    if (!starting()) rounds_.ExpectTogether(workers);
  }
  void Offer(RoundExchange exchange, std::optional<uint64_t> version) override {
    if (!starting() && members_.Worker(exchange.worker)->takes_part) rounds_.Offer(exchange, version);
  }
  void LeaveRounds(const Member& worker, bool comes_back) override { rounds_.Leave(worker, comes_back); }
  void RoundApplied() override;
  std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& squares) override {
    return rounds_.OnNorm(round, squares);
  }

  void OnWelcome(Member& member, bool replaces) override;
  void Left(Member& member) override;
  void OnOverdue(Member& member, const std::string& why) override;
  bool OnAbort(Member& member, const wire::Abort& abort, bool waits) override;
  RunStatus OnHeartbeat(const Member& member, const wire::Heartbeat& beat) override;

  bool OnRequest(Member& member, const wire::Envelope& request, bool repeated) override;
  bool OnNotice(Member& ps, const wire::Envelope& envelope, net::Message& message) override;
  uint64_t ReplicaFor(const Member& ps) const override { return replicas_.EpochFor(ps); }
  void TellState(bool all, const PutSection& put) override;
  void TakeOver(const StateImage& state) override;
  void EndInPlace(const std::string& why) override;
  uint64_t Incarnation() const override {
    return parts_.replica == nullptr ? 0 : parts_.replica->incarnation();
  }
  void AllHear() override;
  bool fills() const override { return history_.replica != 0; }
  void OnMessage(const wire::Envelope&, net::Message&) override {}

  void OnReplicaDiffers(const std::string& why) override { throw Failure(ExitCode::kInternal, why); }
  void OnFilled(const FillOutcome& outcome) override { restore_.OnOutcome(0, outcome); }
  void OnSnapshot(int ps, uint64_t number, const ShardSaver::Outcome* part) override;
  void AskForPiece(uint64_t, Piece) override {}
  bool SeesDirectory() const override { return true; }

  void Tick(TimePoint now) override;
  bool busy() const override {
    return end_.lacks_own() || (checkpoints_ != nullptr && checkpoints_->writing());
  }
  bool Finished(TimePoint now) const override { return phase_ == RunPhase::kEnded && end_.Finished(now); }
  RunSummary Summary() const override { return end_.summary(); }
  void Leave(const std::string& why) override;
  void Abort(int exit_code, const std::string& text, const RunSummary* summary) override;

  std::string StatusJson() override;
  RunSummary Reached() const override;

  // The run waits for tasks or for the first weights.
  bool starting() const { return phase_ == RunPhase::kJoining || phase_ == RunPhase::kInitialising; }
  // Every ps has its values: starts the run, or lets it go on.
  void Begin(const StartedFrom& from);

 private:
  Restore::Parts RestoreParts();
  // The state that a replica of ps 0 has, in its sections.
  void RunState(Archive& archive);
  void StateNow(Archive& archive);
  void MemberState(Member& member, Archive& archive);
  void Fill();
  const char* PhaseName() const;
  void TellStatus(TimePoint now);
  std::optional<int64_t> AllSteps() const;
  // Grants no more steps (sync: decides no more rounds).
  void EndEarly();
  // Ends the run on a signal to the task `to`: saves it, then throws RunStopped. Later signals change
  // nothing.
  void Stop(int signal, const std::string& to);
  // Takes the last checkpoint of a run that is to stop, and ends it as soon as that is written.
  void SaveAndEnd();
  // The run has had enough tasks and is not over: from now on a lost ps cannot be replaced.
  bool begun() const { return phase_ == RunPhase::kInitialising || phase_ == RunPhase::kRunning; }
  bool OnWorkerRequest(Member& worker, const wire::Envelope& request, bool repeated);
  void OnReady(Member& member, uint64_t request, const wire::Ready& ready);
  void LearnOfReturning(const Member& member, const wire::Ready& ready);
  void BeginWhenEnoughAreReady();
  void TakeStart(const StartedFrom& from);
  void CountLoss(Member& worker, const wire::Push& push, float loss);
  void StartAll();
  void Start(Member& member, uint64_t request);
  void AfterStep();
  void OnDone(Member& member, uint64_t request, const wire::Done& done);
  void OnNeedStep(Member& worker, uint64_t request, const wire::NeedStep& question, bool repeated);
  void OnNeedSnapshot(Member& worker, uint64_t request, const wire::NeedSnapshot& question, bool repeated);
  void OnFreeBatches();
  void OnEvaluated(const Member& member, uint64_t request, const wire::Evaluated& said);
  void OnHookRequest(const Member& worker, const wire::HookRequest& asked);
  void OnReport(Member& ps, const wire::Report& report);
  void EndWhenOutOfTime(TimePoint now);
  void CloseWhenAllDone(TimePoint now);
  void WorkOnEnd(TimePoint now);
  // All workers are done but those that were lost and may still return.
  bool WaitsAtEnd() const;
  void OnWaitEnd(Member& member, uint64_t request, const wire::WaitEnd& question);
  void OnLost(Member& member, const std::string& why);
  void OnPsAgain(Member& ps, bool replaces);
  // Waits for a ps that is lost, and fills itself from its replica when it is back.
  void Recover(Member& ps, const std::string& why);
  void EndRecovery(Member& ps);
  // The ps does not come back: takes the last checkpoint with the help of its replica, and ends the run.
  void EndWithout(Member& ps, const std::string& why);
  [[noreturn]] void EndWithoutPs(const std::string& error);
  // Goes back to a checkpoint, or ends the run.
  [[noreturn]] void GiveUpPs(const std::string& why);
  std::string WaitingText(TimePoint now) const;
  [[noreturn]] void RollBack(const std::string& why);
  void OnSaved(const std::string& error);
  // The run ends if the checkpoint fails that is being written.
  bool MustSave() const { return stop_.asked() || phase_ == RunPhase::kInitialising || all_done_; }
  void EndWhenComplete(TimePoint now);
  // `goes_back`: a ps was lost, so that the run would go on from its newest checkpoint. `more`: to say of
  // that.
  [[noreturn]] void EndStopped(const std::string& unsaved, bool goes_back = false,
                               const std::string& more = {}) const;
  // The run ends with its checkpoint, whatever becomes of the worker.
  bool EndsAnyhow(const Member& member) const { return !gone_.empty() && member.is_worker(); }
  bool sync() const { return config_.train.mode == TrainMode::kSync; }
  bool keeps_best() const { return config_.eval.keep_best && checkpoints_ != nullptr; }

  const LeaderParts parts_;
  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  Logger& log_;
  RunHistory& history_;
  RunPhase phase_ = RunPhase::kJoining;
  RecoveryStats recovery_;
  Replicas replicas_;
  StartBarrier barrier_;
  RunData data_;
  RunPositions positions_;
  ProgressiveLoss progressive_;  // with hooks.progressive
  Evaluations evaluations_;
  Leases leases_;
  Steps steps_;
  Rounds rounds_;
  RunStart start_;
  RunStop stop_;
  RunEnd end_;
  LostWorkers lost_workers_;
  SlowWorkers slow_workers_;
  StatusReport status_;
  TimePoint next_status_;
  const std::unique_ptr<Checkpoints> checkpoints_;  // null without checkpoint.dir
  Archive archive_;                                 // for TellState()
  Restore restore_;
  int64_t goes_on_at_ = 0;    // the step of the checkpoint that a new run resumes from, as it seems now
  bool out_of_time_ = false;  // train.max_secs have passed
  bool all_done_ = false;     // no worker takes another step
  bool aborted_ = false;      // the run has failed, or was stopped
  bool in_place_ = false;     // on ps 1, since ps 0 does not come back
  bool all_hear_ = false;     // AllHear() was called
  std::optional<std::string> end_error_;  // of the last checkpoint, which waits for that
  std::string gone_;              // why the run ends without a ps, once it is saved; empty: it does not
  std::optional<TaskId> failed_;  // the task that is to blame for a failure; unset: none
  bool failed_by_loss_ = false;   // since it was lost
};

}  // namespace dtrain
