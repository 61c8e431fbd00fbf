#include "trainer/leader/local_leader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/fault_point.h"
#include "base/names.h"
#include "base/signals.h"
#include "trainer/order/order.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/snapshot_keeper.h"
#include "trainer/result/run_account.h"
#include "trainer/summary/summary.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kStatusEvery{1000};

}  // namespace

LocalLeader::LocalLeader(const LeaderParts& parts)
    : parts_(parts),
      config_(parts.task.config),
      members_(parts.members),
      outbox_(parts.outbox),
      log_(parts.task.log),
      history_(parts.history),
      recovery_(history_, log_),
      replicas_(config_, members_, outbox_, parts.replica, log_),
      barrier_(config_, members_, history_, log_, Clock::now()),
      data_(config_, members_, history_, log_),
      positions_(config_, members_),
      evaluations_(config_, members_, history_, log_),
      leases_(config_, parts.task.layout, members_, history_, outbox_, log_),
      steps_(config_, members_, outbox_, leases_,
             [this](Member& worker) { return parts_.rule.StartClock(worker); }),
      rounds_(config_, members_, outbox_, parts.rule),
      start_({members_, positions_, history_, steps_, leases_, rounds_, parts.rule, outbox_, log_}),
      stop_(config_, members_, history_, log_),
      end_(config_, parts.task.layout, members_, evaluations_, history_, outbox_, log_),
      lost_workers_(config_, members_, history_, log_),
      slow_workers_(config_.cluster.worker.size(), config_.failure.detect_s),
      status_(config_, members_, history_),
      checkpoints_(config_.checkpoint.dir.empty()
                       ? nullptr
                       : std::make_unique<Checkpoints>(
                             Checkpoints::Parts{parts_, rounds_, steps_, leases_, positions_,
                                                [this](const std::string& error) { OnSaved(error); }})),
      restore_(RestoreParts()) {
  leases_.set_on_free([this] { OnFreeBatches(); });
  if (!checkpoints_ || history_.begun || config_.checkpoint.resume != "auto") return;
  const std::vector<ListedCheckpoint> found = checkpoints_->directory().List();
  if (!found.empty()) goes_on_at_ = found[0].step;
}

Restore::Parts LocalLeader::RestoreParts() {
  return {config_,
          parts_.task.layout,
          members_,
          outbox_,
          history_,
          checkpoints_ ? &checkpoints_->directory() : nullptr,
          [this](const FillOrder& order) { parts_.filler.Take(order); },
          [this](const StartedFrom& from) { Begin(from); },
          log_};
}

bool LocalLeader::OnRequest(Member& member, const wire::Envelope& request, bool repeated) {
  const uint64_t number = request.request();
  switch (request.body_type()) {
    case Body::Ready:
      OnReady(member, number, *request.body_as_Ready());
      return true;
    case Body::WaitEnd:
      OnWaitEnd(member, number, *request.body_as_WaitEnd());
      return true;
    case Body::Bye:
      member.told = true;
      return true;
    default:
      return member.is_worker() && OnWorkerRequest(member, request, repeated);
  }
}

bool LocalLeader::OnWorkerRequest(Member& worker, const wire::Envelope& request, bool repeated) {
  const uint64_t number = request.request();
  switch (request.body_type()) {
    case Body::NeedStep:
      // Before the start nothing is granted: grants count from the step that the run begins with.
      if (phase_ == RunPhase::kRunning || phase_ == RunPhase::kEnded) {
        OnNeedStep(worker, number, *request.body_as_NeedStep(), repeated);
      }
      return true;
    case Body::Done:
      OnDone(worker, number, *request.body_as_Done());
      return true;
    case Body::NeedSnapshot:
      OnNeedSnapshot(worker, number, *request.body_as_NeedSnapshot(), repeated);
      return true;
    case Body::Evaluated:
      OnEvaluated(worker, number, *request.body_as_Evaluated());
      return true;
    case Body::HookRequest:
      if (!repeated) OnHookRequest(worker, *request.body_as_HookRequest());
      outbox_.Ack(worker.node, number);
      return true;
    default:
      return false;
  }
}

bool LocalLeader::OnNotice(Member& ps, const wire::Envelope& envelope, net::Message& message) {
  switch (envelope.body_type()) {
    case Body::Report:
      OnReport(ps, *envelope.body_as_Report());
      return true;
    case Body::Piece:
      if (checkpoints_) checkpoints_->OnPiece(ps, std::move(message));
      return true;
    case Body::ReadPiece:
      restore_.OnReadPiece(ps, *envelope.body_as_ReadPiece());
      return true;
    default:
      return false;
  }
}

void LocalLeader::OnReport(Member& ps, const wire::Report& report) {
  if (const wire::Filled* const filled = report.filled()) {
    const std::string error = filled->error() == nullptr ? "" : ShortText(filled->error()->str());
    restore_.OnOutcome(static_cast<size_t>(ps.task.index), {filled->number(), error, filled->kept()});
  }
  if (report.snapshot() != nullptr && checkpoints_) checkpoints_->OnSnapshotState(ps, *report.snapshot());
  if (report.checksums() != nullptr) end_.OnChecksums(ps, *report.checksums());
  if (report.taken() != nullptr) leases_.OnTaken(ps, *report.taken());
  const wire::ReplicaState* const replica = report.replica();
  if (replica != nullptr && replica->differs() != nullptr)
    OnReplicaDiffers(ShortText(replica->differs()->str()));
  if (replica != nullptr && !replicas_.OnReport(ps, *replica)) {
    GiveUpPs(fmt::format("{} could not be filled from its replica on {}", members_.NameOf(ps),
                         replicas_.HolderOf(ps)));
  }
}

void LocalLeader::OnHookRequest(const Member& worker, const wire::HookRequest& asked) {
  if (asked.save() && checkpoints_) checkpoints_->AskUnlessLast();
  if (asked.end_run() == nullptr) return;
  log_.Info("{} ends the run early: {}", TaskName(worker.task), ShortText(asked.end_run()->str()));
  EndEarly();
}

void LocalLeader::OnSnapshot(int ps, uint64_t number, const ShardSaver::Outcome* part) {
  if (!checkpoints_) return;
  ps == 0 ? checkpoints_->OnOwnSnapshot(number, part)
          : checkpoints_->OnSnapshot(members_.Ps(static_cast<size_t>(ps)), number, part);
}

void LocalLeader::OnReady(Member& member, uint64_t request, const wire::Ready& ready) {
  member.devices = std::max<int64_t>(ready.devices(), 1);
  if (const std::string why = leases_.WhyNot(member); !why.empty()) {
    return outbox_.Refuse(member.node, request, wire::Reason::Config, why);
  }
  member.ready = true;
  member.sees_directory = ready.sees_directory();
  if (ready.data() != nullptr && member.is_worker()) data_.Learn(member, *ready.data());
  if (phase_ == RunPhase::kJoining && ready.returning()) LearnOfReturning(member, ready);
  if (!gone_.empty() && replicas_.IsRecovering(member)) return;  // too late
  if (phase_ == RunPhase::kRunning || phase_ == RunPhase::kEnded) {
    Start(member, request);
    if (replicas_.IsRecovering(member)) EndRecovery(member);
  } else {
    member.ready_request = request;
    BeginWhenEnoughAreReady();
  }
}

void LocalLeader::LearnOfReturning(const Member& member, const wire::Ready& ready) {
  recovery_.Learn(TaskName(member.task), ready);
  if (history_.run.epoch > 0) return;
  // This process of ps 0 is new, and nobody knows whether every worker took part all the time.
  history_.peers_returned = true;
  history_.disturbed |= !RoundsWaitForLost(config_) || config_.eval.patience > 0;
}

// A worker waits until it is known what its last process has done.
void LocalLeader::Start(Member& member, uint64_t request) {
  if (member.is_worker() && leases_.IsUnknown(member)) {
    member.ready_request = request;
    return;
  }
  start_.Tell(member, request, phase_ == RunPhase::kEnded || all_done_);
  if (!member.takes_part) return;
  history_.took_part.resize(config_.cluster.worker.size());
  history_.took_part[static_cast<size_t>(member.task.index)] = true;
}

void LocalLeader::BeginWhenEnoughAreReady() {
  if (phase_ != RunPhase::kJoining) return;
  const std::optional<StartBarrier::Enough> enough = barrier_.Look(Clock::now());
  if (!enough) return;
  phase_ = RunPhase::kInitialising;
  history_.disturbed |= !enough->all;
  for (Member& member : members_.all()) {
    member.takes_part = member.is_worker() && member.is_ready();
  }
  restore_.Begin(history_.begun, data_.facts());
}

void LocalLeader::Begin(const StartedFrom& from) {
  TakeStart(from);
  const bool restored = !from.path.empty();
  if (restored) history_.checkpoint = ShortText(from.path);
  if (restored) history_.checkpoint_step = from.step;
  if (checkpoints_ && restored) checkpoints_->set_saved(from.step);
  const std::string& resume = config_.checkpoint.resume;
  // The newest checkpoint of checkpoint.dir is not this run's, so the run could not go back to it.
  const bool elsewhere = !history_.begun && resume != "auto" && resume != "never";
  if (checkpoints_ && (!restored || elsewhere)) return checkpoints_->Ask(false);  // OnSaved() starts the run
  StartAll();
}

void LocalLeader::TakeStart(const StartedFrom& from) {
  positions_.Take(from.positions, from.step);
  history_.from_initial = !history_.begun && from.path.empty() && from.origin.path.empty();
  history_.origin = from.origin;
  history_.other_data = from.other_data;
  history_.inputs = from.inputs;
  history_.fit = from.fit;
  data_.Start(from);
  // This process of ps 0 is new. A run that is started again after its end counts in vain from 0; its best
  // stays.
  if (history_.first_step < 0 && from.positions.evaluations) {
    CountedEvaluations counted = *from.positions.evaluations;
    if (!history_.peers_returned) counted.in_vain = 0;
    if (history_.peers_returned || from.other_data.empty()) history_.patience->GoOn(counted, from.step);
  }
  if (history_.first_step < 0) {
    history_.first_step = positions_.first_step();
    history_.first_nanos = WallNanos();
    history_.first_examples = positions_.first_examples();
  }
  const std::string warning = history_.begun ? "" : ScheduleWarning(config_.train, AllSteps());
  if (!warning.empty()) log_.Warning("{}", warning);
  progressive_.BeginAt(positions_.Progress());
  leases_.BeginAt(from.positions.plan, data_.facts() ? data_.facts()->rows : std::nullopt);
  steps_.BeginAt(positions_.first_step());
  rounds_.BeginAt(positions_.first_step());
}

void LocalLeader::StartAll() {
  phase_ = RunPhase::kRunning;
  history_.begun = true;
  if (history_.training_since == TimePoint()) history_.training_since = Clock::now();
  evaluations_.Begin(global_step(), keeps_best() ? checkpoints_->BestScore() : 0);
  status_.Begin();
  if (parts_.task.summary != nullptr) parts_.task.summary->Begin(global_step());
  if (checkpoints_) checkpoints_->Run();
  replicas_.Begin();
  if (parts_.task.on_begun) parts_.task.on_begun(IdentityOf(history_.run, members_));
  for (Member& other : members_.all()) {
    if (const uint64_t waiting = other.ready_request) Start(other, waiting);
  }
}

// A loss that a step on a GPU tells with the next push (docs/wire.md) counts with the rows of that.
void LocalLeader::CountLoss(Member& worker, const wire::Push& push, float loss) {
  worker.result.losses.Add(loss);
  if (!config_.hooks.progressive) return;
  const double weight = push.weight().value_or(push.examples());
  LossSums& sums = worker.result.progress;
  sums.rows = AddCounts(sums.rows, int64_t{push.examples()});
  sums.weight += weight;
  sums.loss += weight * static_cast<double>(loss);
  if (progressive_.Count(push.examples())) progressive_.Log(positions_.Progress(), log_);
}

void LocalLeader::StepApplied(Member& member, const wire::Push& push) {
  CountGradient(member, push);
  if (recovery_.open()) recovery_.End(global_step());
  steps_.Applied(member);
  AfterStep();
}

void LocalLeader::RoundApplied() {
  if (recovery_.open()) recovery_.End(global_step());
  steps_.RoundApplied();
  AfterStep();
}

void LocalLeader::AfterStep() {
  if (parts_.task.summary != nullptr) parts_.task.summary->OnStep(global_step(), members_.workers());
  if (checkpoints_) checkpoints_->OnStep();
  if (steps_.over()) steps_.ServeWaiting();
}

void LocalLeader::OnDone(Member& member, uint64_t request, const wire::Done& done) {
  {
    const FaultScope fault("end.done");
    outbox_.Ack(member.node, request);
  }
  steps_.GiveBack(member);
  leases_.Release(member);
  steps_.ServeWaiting();
  if (member.done) return;
  member.done = true;
  if (checkpoints_) checkpoints_->ForgetCandidate(member);
  member.result.Take(done);
  log_.Detail("{} is done: {}", TaskName(member.task), Plural(member.result.local_steps, "local step"));
  CloseWhenAllDone(Clock::now());
}

// With leases a worker that asks has sent all of its gradients, and every ps has answered them.
void LocalLeader::OnNeedStep(Member& worker, uint64_t request, const wire::NeedStep& question,
                             bool repeated) {
  if (leases_.on() && !repeated) {
    steps_.GiveBack(worker);
    leases_.Pauses(worker);
  }
  steps_.OnNeedStep(worker, request, question.paused());
  if (checkpoints_) checkpoints_->TakeWhenAllPause();
}

// Batches are free, or it is known what a worker has done that was lost.
void LocalLeader::OnFreeBatches() {
  if (phase_ != RunPhase::kRunning) return;
  for (Member& member : members_.all()) {
    const uint64_t waiting = member.is_worker() ? member.ready_request : 0;
    if (waiting != 0 && member.here() && !leases_.IsUnknown(member)) Start(member, waiting);
  }
  steps_.ServeWaiting();
}

void LocalLeader::OnNeedSnapshot(Member& worker, uint64_t request, const wire::NeedSnapshot& question,
                                 bool repeated) {
  if (leases_.on() && !repeated) {
    steps_.GiveBack(worker);
    leases_.Pauses(worker);
    if (checkpoints_) checkpoints_->TakeWhenAllPause();
  }
  const uint64_t due = evaluations_.DueFor(worker);
  const bool is_due = due != 0 && due == question.local_step();
  if (is_due && keeps_best() && checkpoints_->OnNeedSnapshot(worker, request)) return;
  outbox_.Answer(worker.node, request, [](auto& builder) { return wire::CreateGrant(builder); });
}

void LocalLeader::OnEvaluated(const Member& member, uint64_t request, const wire::Evaluated& said) {
  if (said.local_step() == 0) {
    const bool taken = end_.OnEvaluated(member, said);
    const std::optional<EvaluationFigures> best = taken ? evaluations_.TakeFinal(said) : std::nullopt;
    if (best && checkpoints_) checkpoints_->AskBest(*best);
  } else {
    // A run that stops writes no candidate any more. Its evaluator is not answered, and does not tell the
    // loss.
    if (stop_.asked() && keeps_best() && evaluations_.DueFor(member) == said.local_step()) return;
    const bool kept = checkpoints_ && checkpoints_->IsCandidate(said.snapshot());
    const Evaluations::Verdict verdict = evaluations_.Take(member, said, kept);
    if (checkpoints_) checkpoints_->OnEvaluated(member, verdict.best);
    if (!verdict.end.empty()) {
      const FaultScope fault("leader.patience");
      log_.Info("the run ends early: {}", verdict.end);
      EndEarly();
    }
  }
  {
    const FaultScope fault("evaluate.taken");
    outbox_.Answer(member.node, request, [&](auto& builder) {
      return wire::CreateGrant(builder, 0, evaluations_.ended(), static_cast<uint64_t>(global_step()));
    });
  }
  EndWhenComplete(Clock::now());
}

bool LocalLeader::WaitsAtEnd() const {
  return phase_ == RunPhase::kRunning && !all_done_ && !steps_.over() && members_.AllDone() &&
         lost_workers_.MayReturn(Clock::now());
}

// A run that goes back to a checkpoint keeps its time, and ends at once if it has none left.
void LocalLeader::EndWhenOutOfTime(TimePoint now) {
  const std::optional<double> max_secs = config_.train.max_secs;
  if (!max_secs || out_of_time_ || SecondsBetween(history_.training_since, now) < *max_secs) return;
  out_of_time_ = true;
  log_.Info("the run ends: {} s of training have passed (train.max_secs)", *max_secs);
  EndEarly();
}

void LocalLeader::CloseWhenAllDone(TimePoint now) {
  const bool open = phase_ == RunPhase::kRunning && !all_done_ && gone_.empty();
  if (!open || !members_.AllDone() || WaitsAtEnd()) return;
  if (progressive_.rows_since_line() > 0) progressive_.Log(positions_.Progress(), log_);
  if (checkpoints_) checkpoints_->Finish();
  all_done_ = true;
  end_.Begin(now);
  WorkOnEnd(now);
}

void LocalLeader::WorkOnEnd(TimePoint now) {
  if (end_.lacks_own()) {
    if (std::optional<ShardReport> own = parts_.report()) end_.TakeOwn(std::move(*own));
  }
  end_.Tick(now);
  EndWhenComplete(now);
}

void LocalLeader::EndWhenComplete(TimePoint now) {
  if (phase_ != RunPhase::kRunning || !end_.Complete() || (checkpoints_ && !checkpoints_->idle())) return;
  phase_ = RunPhase::kEnded;
  replicas_.End();
  std::optional<double> progressive;
  if (config_.hooks.progressive) progressive = MeanOf(positions_.Progress());
  end_.Tell({global_step(), positions_.other_examples(), steps_.first_applied_nanos(), history_.disturbed,
             progressive},
            now);
  TellStatus(now);
}

// A requested checkpoint has ended. The run waits for the first and the last one, which must succeed, and for
// the one after a signal.
void LocalLeader::OnSaved(const std::string& error) {
  if (!gone_.empty() && in_place_ && !all_hear_) {
    end_error_ = error;
    return;
  }
  if (!gone_.empty()) EndWithoutPs(error);
  if (stop_.asked()) EndStopped(error);
  const bool again = all_done_ && checkpoints_->HasAllOf(global_step());  // as the best
  if (again && !error.empty()) {
    log_.Warning("the final weights are saved and the best, but not named as the best: {}", error);
  } else if (MustSave() && !error.empty()) {
    throw IoError("the {} checkpoint could not be written: {}", all_done_ ? "last" : "first", error);
  }
  if (phase_ == RunPhase::kInitialising) return StartAll();
  EndWhenComplete(Clock::now());
}

void LocalLeader::Stop(int signal, const std::string& to) {
  if (stop_.asked() || phase_ == RunPhase::kEnded) return;
  // The signal of a supervisor goes to every task, and whose news come first says nothing.
  stop_.Ask(signal, parts_.task.supervised ? "" : to, Clock::now());
  if (gone_.empty()) SaveAndEnd();
}

void LocalLeader::SaveAndEnd() {
  steps_.Close();
  const bool begins = phase_ == RunPhase::kInitialising;
  if (phase_ == RunPhase::kJoining || !checkpoints_ || (begins && checkpoints_->idle())) EndStopped("");
  if (begins) return;  // OnSaved() ends the run
  const bool saved = checkpoints_->HasAllOf(global_step()) && checkpoints_->verified();
  if (checkpoints_->idle() && saved) EndStopped("");
  checkpoints_->Close();
  checkpoints_->Ask(true);
}

void LocalLeader::EndStopped(const std::string& unsaved, bool goes_back, const std::string& more) const {
  stop_.End({global_step(), checkpoints_ ? checkpoints_->saved_step() : -1, goes_back || starting(), more},
            unsaved);
}

void LocalLeader::OnWaitEnd(Member& member, uint64_t request, const wire::WaitEnd& question) {
  if (request < member.end_request) return;  // an older request that was repeated
  member.end_request = request;
  if (phase_ == RunPhase::kEnded) return end_.Send(member);
  if (!member.is_worker()) return rounds_.Ask(member, question);
  end_.OnWorkerWaits(member);
}

RunStatus LocalLeader::OnHeartbeat(const Member& member, const wire::Heartbeat& beat) {
  if (fills()) return {};
  status_.OnHeartbeat(member, beat, Clock::now());
  if (member.is_worker()) {
    const std::optional<SlowWorkers::Change> change =
        slow_workers_.Report(member.task.index, PaceIn(beat), members_.workers(), Clock::now());
    if (change) {
      const std::string text = fmt::format("{} {}", members_.NameOf(member), PaceText(*change));
      change->slow ? log_.Warning("{}", text) : log_.Info("{}", text);
    }
  }
  if (AsksToStop(beat.stop())) Stop(beat.stop(), members_.NameOf(member));
  return {phase_ == RunPhase::kJoining ? ShortText(barrier_.Status()) : std::string(), members_.workers(),
          stop_.signal(), history_.Newest()};
}

void LocalLeader::EndEarly() {
  if (!sync()) return steps_.EndEarly(std::nullopt);
  rounds_.EndHere();
  steps_.EndEarly(rounds_.version());
  rounds_.Decide();
}

void LocalLeader::Tick(TimePoint now) {
  if (fills()) return Fill();
  if (const int signal = parts_.activity.stop_signal()) {
    const TaskId self = parts_.task.self;
    Stop(signal,
         fmt::format("{} ({}; {})", TaskName(self), KnownAddress(config_.cluster, self), ProcessText()));
  }
  if (const std::string why = stop_.Overdue(now); !why.empty()) {
    const std::string ps = replicas_.Awaited();
    EndStopped(why + (ps.empty() ? "" : "; it waited for " + ps));
  }
  if (Member* const ps = gone_.empty() ? replicas_.Away() : nullptr) {
    const std::string over = replicas_.WhyOver(now);
    if (!over.empty() || stop_.asked()) EndWithout(*ps, over.empty() ? replicas_.LostText(now) : over);
  }
  if (phase_ == RunPhase::kJoining) BeginWhenEnoughAreReady();
  if (phase_ == RunPhase::kJoining) barrier_.Check(now);
  if (begun() && gone_.empty()) lost_workers_.Tick(now, WaitsAtEnd());
  if (phase_ == RunPhase::kRunning) {
    if (!all_done_) EndWhenOutOfTime(now);
    CloseWhenAllDone(now);  // a lost worker that might have returned may be too late now
    WorkOnEnd(now);
  }
  if (phase_ == RunPhase::kEnded) end_.TellHolder(now);
  if (checkpoints_) checkpoints_->Tick(now);
  restore_.Tick(now);
  leases_.Tick(now);
  replicas_.Tick(now);
  status_.Tick(now, global_step());
  if (now >= next_status_) TellStatus(now);
}

void LocalLeader::TellStatus(TimePoint now) {
  next_status_ = now + kStatusEvery;
  if (parts_.task.on_status) parts_.task.on_status(StatusJson());
  if (parts_.task.on_reached && phase_ == RunPhase::kRunning) parts_.task.on_reached(Reached());
}

const char* LocalLeader::PhaseName() const {
  if (aborted_) return "ended";
  if (phase_ == RunPhase::kJoining) return "joining";
  if (phase_ == RunPhase::kEnded) return "ended";
  if (stop_.asked() || !gone_.empty()) return "stopping";
  if (phase_ == RunPhase::kInitialising) return "initialising";
  return all_done_ ? "ending" : "training";
}

std::optional<int64_t> LocalLeader::AllSteps() const {
  return StepsOfRun(config_, data_.facts() ? data_.facts()->rows : std::nullopt, positions_.plan());
}

std::string LocalLeader::WaitingText(TimePoint now) const {
  const std::string ps = replicas_.WaitingText(now), workers = lost_workers_.WaitingText(now, WaitsAtEnd());
  return ps + (ps.empty() || workers.empty() ? "" : "; ") + workers;
}

std::string LocalLeader::StatusJson() {
  StatusReport::Now now;
  now.phase = PhaseName();
  if (phase_ == RunPhase::kJoining) now.waiting = barrier_.StatusUntil(Clock::now());
  if (begun()) now.waiting = WaitingText(Clock::now());
  now.replicas = replicas_.Figures();
  // A run that goes on from a checkpoint is there already, before all tasks are here.
  now.global_step = !starting() ? global_step() : history_.begun ? history_.checkpoint_step : goes_on_at_;
  now.steps = AllSteps();
  now.saving = checkpoints_ != nullptr && checkpoints_->saving();
  now.ended = aborted_ || phase_ == RunPhase::kEnded;
  now.done = phase_ == RunPhase::kEnded;
  now.failed = failed_;
  now.failed_by_loss = failed_by_loss_;
  if (checkpoints_) now.warning = checkpoints_->Trouble();
  now.traffic = parts_.activity.traffic();
  return status_.ToJson(now);
}

// From now on messages belong to the next run epoch; the tasks that this refusal reaches join that.
void LocalLeader::Leave(const std::string& why) {
  ++history_.run.epoch;
  outbox_.set_run(history_.run);
  for (const Member& member : members_.all()) {
    if (member.here()) outbox_.Refuse(member.node, 0, wire::Reason::Run, why);
  }
}

RunSummary LocalLeader::Reached() const {
  if (!history_.begun) return {};
  RunSummary summary = SummarySoFar(members_, history_, starting() ? history_.lost_step : global_step());
  if (starting()) summary.local_steps.clear();  // those of a run that goes back are known when it goes on
  std::vector<int64_t>& lost = summary.lost_workers;
  const bool by_worker = failed_ && failed_by_loss_ && failed_->role == Role::kWorker;
  if (by_worker && std::count(lost.begin(), lost.end(), failed_->index) == 0) lost.push_back(failed_->index);
  return summary;
}

void LocalLeader::Abort(int exit_code, const std::string& text, const RunSummary* summary) {
  aborted_ = true;
  if (summary == nullptr) failed_ = BlameFor(parts_.task.self, "", text).task;
  failed_by_loss_ = exit_code == static_cast<int>(ExitCode::kPeerLost);
  TellStatus(Clock::now());
  const TaskId self{Role::kPs, in_place_ ? 1 : 0};
  if (in_place_) members_.Remove(members_.Ps(1));  // this process, which ends by itself
  const milliseconds every =
      std::min<milliseconds>(Heartbeat::Interval(config_.failure.detect_s), milliseconds(50));
  TellOfAbort({self, exit_code, text, summary, parts_.task.supervised}, every, members_, parts_.task.channel,
              outbox_);
}

}  // namespace dtrain
