#include "trainer/ps/coordinator.h"

#include <utility>

#include "base/error.h"
#include "base/plural.h"
#include "trainer/config/determinism.h"
#include "trainer/peer/form_message.h"
#include "trainer/ps/save_desk.h"

namespace dtrain {

using wire::Body;

Coordinator::Coordinator(const Config& config, Membership& members, Outbox& outbox, Logger& log,
                         RunHistory& history)
    : config_(config),
      members_(members),
      outbox_(outbox),
      log_(log),
      history_(history),
      standings_(config, members),
      chief_(config, members, history),
      setback_(history, static_cast<int>(config.cluster.worker.size()), log),
      gathering_(config, members, standings_, chief_, history, log, Clock::now()),
      positions_(config, members, standings_),
      evaluations_(config, members, standings_, history, log),
      steps_(config, members, standings_, outbox),
      starts_({standings_, chief_, positions_, history, steps_, outbox, log}),
      desk_(config, members, outbox),
      stop_(config, members, history, log),
      end_(config, members, standings_, evaluations_, history, outbox, log) {}

void Coordinator::set_saves(SaveDesk* saves) {
  saves_ = saves;
  saves->set_ended([this](const std::string& error) { OnSaved(error); });
}

bool Coordinator::Handle(Member& member, const wire::Envelope& request) {
  const uint64_t number = request.request();
  switch (request.body_type()) {
    case Body::Ready:
      OnReady(member, number, *request.body_as_Ready());
      return true;
    case Body::Initialised:
      OnInitialised(member, number, *request.body_as_Initialised());
      return true;
    case Body::NeedStep:
      steps_.OnNeedStep(member, number);
      return true;
    case Body::Done:
      OnDone(member, number, *request.body_as_Done());
      return true;
    case Body::Evaluated:
      OnEvaluated(member, number, *request.body_as_Evaluated());
      return true;
    case Body::WaitEnd:
      OnWaitEnd(member, number, *request.body_as_WaitEnd());
      return true;
    case Body::Bye:
      standings_.Of(member).told = true;
      return true;
    default:
      return false;
  }
}

void Coordinator::OnReady(Member& member, uint64_t request, const wire::Ready& ready) {
  Standing& standing = standings_.Of(member);
  standing.ready = true;
  standing.evaluates = ready.evaluates();
  if (phase_ == RunPhase::kJoining && ready.returning()) {
    setback_.Learn(ready);
    history_.peers_returned |= history_.run.epoch == 0;
    // ps 0 was restarted, and nobody knows whether all were there all the time.
    if (history_.run.epoch == 0) {
      history_.disturbed |= !RoundsWaitForLost(config_) || config_.eval.patience > 0;
    }
  }
  if (phase_ == RunPhase::kRunning || phase_ == RunPhase::kEnded) {
    Start(member, request);
  } else if (phase_ == RunPhase::kInitialising && IsChief(member)) {
    starts_.TellToInitialise(member, request,
                             history_.begun);  // asked again, or a chief that came back before it was done
  } else {
    standing.ready_request = request;
    BeginWhenEnoughAreReady();
  }
}

void Coordinator::Start(Member& member, uint64_t request) {
  starts_.Tell(member, request, phase_ == RunPhase::kEnded || all_done_);
  if (!standings_.Of(member).takes_part) return;
  history_.took_part.resize(config_.cluster.worker.size());
  history_.took_part[static_cast<size_t>(member.task.index)] = true;
}

void Coordinator::BeginWhenEnoughAreReady() {
  if (phase_ != RunPhase::kJoining) return;
  const std::optional<Gathering::Enough> enough = gathering_.Look(Clock::now());
  if (!enough) return;
  chief_.BeginWith(*enough->chief);
  phase_ = RunPhase::kInitialising;
  disturbed_ = history_.disturbed || !enough->all;
  for (const Member& member : members_.all()) {
    standings_.Of(member).takes_part = member.task.role == Role::kWorker && standings_.IsReady(member);
  }
  starts_.TellToInitialise(*enough->chief, standings_.Of(*enough->chief).ready_request, history_.begun);
}

// Answered with the chief's Start, when the run begins.
void Coordinator::OnInitialised(Member& member, uint64_t request, const wire::Initialised& done) {
  if (!IsChief(member)) return;
  if (phase_ == RunPhase::kRunning) return Start(member, request);
  if (phase_ != RunPhase::kInitialising) return;
  const bool repeated = std::exchange(standings_.Of(member).ready_request, request) != 0;
  if (repeated) return;
  TakePositions(done);
  const bool restored = done.restored() != nullptr;
  if (restored) history_.checkpoint = ShortText(done.restored()->str());
  if (restored) history_.checkpoint_step = positions_.first_step();
  if (saves_ != nullptr && restored) saves_->set_saved(positions_.first_step());
  const std::string& resume = config_.checkpoint.resume;
  // The newest one of the directory is not this run's: it could not go back to that.
  const bool elsewhere = !history_.begun && resume != "auto" && resume != "never";
  if (saves_ != nullptr && (!restored || elsewhere)) return saves_->Ask(false);  // OnSaved() goes on
  StartAll();
}

void Coordinator::TakePositions(const wire::Initialised& done) {
  positions_.Take(done);
  TakeInputs(done.inputs());
  if (history_.run.epoch == 0) history_.from_initial_values = !done.restored();
  history_.data = {static_cast<int64_t>(done.rows()), done.labels()};
  if (history_.first_step < 0) {
    history_.first_step = positions_.first_step();
    history_.first_nanos = WallNanos();
    history_.first_examples = positions_.first_examples();
  }
  steps_.BeginAt(positions_.first_step());
  begin_at_(positions_.first_step());
}

void Coordinator::TakeInputs(const wire::InputForm* said) {
  if (said == nullptr) return;
  if (std::optional<InputForm> form = DecodeForm(*said)) {
    history_.inputs = std::move(form);
  } else {
    log_.Warning("names and scale of the data are not known here: what {} says of them is not valid",
                 TaskName(chief_.member().task));
  }
}

void Coordinator::StartAll() {
  phase_ = RunPhase::kRunning;
  history_.begun = true;
  evaluations_.Begin(global_step());
  if (saves_ != nullptr) saves_->Run();
  if (on_begun_) on_begun_();
  for (Member& other : members_.all()) {
    if (const uint64_t waiting = standings_.Of(other).ready_request) Start(other, waiting);
  }
}

void Coordinator::StepApplied(const Member& member, int64_t examples) {
  CountExamples(member, examples);
  if (setback_.open()) setback_.End(global_step());
  steps_.Applied(member);
  AfterStep();
}

void Coordinator::RoundApplied() {
  if (setback_.open()) setback_.End(global_step());
  steps_.RoundApplied();
  AfterStep();
}

void Coordinator::AfterStep() {
  if (saves_ != nullptr) saves_->OnStep();
  if (steps_.over()) steps_.ServeWaiting();
}

void Coordinator::OnDone(Member& member, uint64_t request, const wire::Done& done) {
  Standing& standing = standings_.Of(member);
  outbox_.Ack(member.node, request);
  steps_.GiveBack(member);
  steps_.ServeWaiting();
  if (standing.done) return;
  standing.done = true;
  standing.result.Take(done);
  log_.Info("{} is done: {}", TaskName(member.task), Plural(standing.result.local_steps, "local step"));
  CloseWhenAllDone(Clock::now());
}

void Coordinator::OnEvaluated(const Member& member, uint64_t request, const wire::Evaluated& said) {
  if (said.local_step() == 0) {
    end_.OnEvaluated(member, said);
  } else {
    const Evaluations::Verdict verdict = evaluations_.Take(member, said);
    if (verdict.best && saves_ != nullptr) saves_->AskBest(*verdict.best);
    if (!verdict.end.empty()) {
      log_.Info("the run ends early: {}", verdict.end);
      end_early_();
    }
  }
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateGrant(builder, 0, evaluations_.ended(), static_cast<uint64_t>(global_step()));
  });
  EndWhenComplete(Clock::now());
}

bool Coordinator::MayGoOn() const {
  return !all_done_ && !steps_.over() && standings_.MayReturn(Clock::now());
}

void Coordinator::CloseWhenAllDone(TimePoint now) {
  if (phase_ != RunPhase::kRunning || all_done_ || !standings_.AllDone() || MayGoOn()) return;
  if (saves_ != nullptr) saves_->Finish();
  all_done_ = true;
  end_.Begin(now);
  EndWhenComplete(now);
}

void Coordinator::EndWhenComplete(TimePoint now) {
  if (phase_ != RunPhase::kRunning || !end_.Complete() || (saves_ != nullptr && !saves_->idle())) return;
  phase_ = RunPhase::kEnded;
  end_.Tell({global_step(), positions_.other_examples(), steps_.first_applied_nanos(), disturbed_}, now);
}

// A checkpoint that was ordered is complete, or failed: with the first and the last one, and after a signal,
// so does the run.
void Coordinator::OnSaved(const std::string& error) {
  if (stop_.asked()) EndStopped(error);
  const bool needed = phase_ == RunPhase::kInitialising || all_done_;
  if (needed && !error.empty()) {
    throw IoError("the {} checkpoint could not be written: {}", all_done_ ? "last" : "first", error);
  }
  if (phase_ == RunPhase::kInitialising) return StartAll();
  EndWhenComplete(Clock::now());
}

void Coordinator::Stop(int signal) {
  if (stop_.asked() || phase_ == RunPhase::kEnded) return;
  stop_.Ask(signal, Clock::now());
  steps_.Close();
  if (phase_ == RunPhase::kJoining) EndStopped("");
  if (saves_ == nullptr) EndStopped("");
  if (phase_ == RunPhase::kInitialising && saves_->idle()) EndStopped("");
  if (phase_ == RunPhase::kInitialising) return;  // the first checkpoint is being written
  if (saves_->idle() && saves_->HasAllOf(global_step())) EndStopped("");
  saves_->Close();
  saves_->Ask(true);
}

void Coordinator::EndStopped(const std::string& unsaved) const {
  stop_.End({global_step(), saves_ != nullptr ? saves_->saved_step() : -1, starting()}, unsaved);
}

void Coordinator::OnWaitEnd(const Member& member, uint64_t request, const wire::WaitEnd& question) {
  Standing& standing = standings_.Of(member);
  if (request < standing.end_request) return;  // an old one that came again
  standing.end_request = request;
  if (phase_ == RunPhase::kEnded) return end_.Send(member);
  if (member.task.role == Role::kPs) return desk_.Ask(member, request, question);
  end_.OnWorkerWaits(member);
}

void Coordinator::Left(const Member& member) {
  chief_lost_ |= IsChief(member) && begun();  // also one that was about to take part again
  Rejoins(member);
}

void Coordinator::Rejoins(const Member& member) {
  Standing& standing = standings_.Of(member);
  steps_.GiveBack(member);
  if (standing.takes_part && begun() && !standing.done) {
    standing.lost = true;
    standing.lost_at = Clock::now();
    disturbed_ |= !RoundsWaitForLost(config_);
  }
  standing.Leave();
  if (member.task.role == Role::kPs) desk_.Forget(member);
  if (phase_ == RunPhase::kEnded) standing.told = true;
  steps_.ServeWaiting();
  CloseWhenAllDone(Clock::now());
}

void Coordinator::NoteLoss() {
  setback_.Begin(global_step());
  history_.disturbed |= disturbed_ || config_.eval.patience > 0;  // an evaluation may have been broken off
  history_.here = standings_.WorkersNow();
}

// One that takes part: it is at its steps, or has taken the last and waits.
Member* Coordinator::Successor() const {
  return chief_.Successor([this](const Member& member) { return standings_.Of(member).takes_part; });
}

void Coordinator::PassChiefOn() {
  if (!std::exchange(chief_lost_, false)) return;
  const TaskId lost = chief_.member().task;
  Member* const next = phase_ == RunPhase::kRunning ? Successor() : nullptr;
  chief_.PassOnTo(next);
  if (saves_ != nullptr) saves_->ForgetSaver();
  if (next == nullptr) return;
  log_.Warning("{} is lost; {} is the chief from now on (term {})", TaskName(lost), TaskName(next->task),
               chief_.term());
  if (saves_ != nullptr) saves_->BeginAnew(all_done_ || stop_.asked());
}

Loss Coordinator::WhatIfLost(const Member& member) const {
  const Standing& standing = standings_.Of(member);
  LossCase lost;
  lost.role = member.task.role;
  lost.phase = phase_;
  lost.chief = IsChief(member);
  lost.takes_part = standing.takes_part;
  lost.awaited = standings_.IsAwaited(member);
  lost.done = standing.done;
  lost.restoring = history_.begun;
  lost.successor = Successor() != nullptr;
  return DecideLoss(config_, lost);
}

void Coordinator::Tick(TimePoint now) {
  if (const std::string why = stop_.Overdue(now); !why.empty()) EndStopped(why);
  if (phase_ == RunPhase::kJoining) BeginWhenEnoughAreReady();
  if (phase_ == RunPhase::kJoining) return gathering_.Check(now);
  if (begun()) standings_.CheckAwaited(now);
  if (phase_ != RunPhase::kRunning) return;
  CloseWhenAllDone(now);  // who may return has not, in time
  end_.Tick(now);
  EndWhenComplete(now);
}

}  // namespace dtrain
