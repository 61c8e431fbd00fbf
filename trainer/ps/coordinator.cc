#include "trainer/ps/coordinator.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
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
      setback_(history, log),
      barrier_(config, members, standings_, history, log, Clock::now()),
      positions_(config, members, standings_),
      evaluations_(config, members, standings_, history, log),
      steps_(config, members, standings_, outbox),
      starts_({standings_, positions_, history, steps_, outbox, log}),
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
  standing.sees_directory = ready.sees_directory();
  if (ready.data() != nullptr) LearnOfData(member, *ready.data());
  if (phase_ == RunPhase::kJoining && ready.returning()) LearnOfReturning(member, ready);
  if (phase_ == RunPhase::kRunning || phase_ == RunPhase::kEnded) {
    Start(member, request);
  } else {
    standing.ready_request = request;
    BeginWhenEnoughAreReady();
  }
}

void Coordinator::LearnOfReturning(const Member& member, const wire::Ready& ready) {
  setback_.Learn(ready);
  history_.peers_returned |= history_.run.epoch == 0;
  // ps 0 was restarted, and nobody knows whether all were there all the time.
  if (history_.run.epoch == 0) {
    history_.disturbed |= !RoundsWaitForLost(config_) || config_.eval.patience > 0;
  }
  KnownCheckpoint known;
  known.Learn(ready.checkpoint(), ready.checkpoint_step());
  if (known.where.empty() || (!history_.known.where.empty() && known.step <= history_.known.step)) return;
  history_.known = known;
  history_.known_by = TaskName(member.task);
}

void Coordinator::LearnOfData(const Member& member, const wire::DataFacts& said) {
  if (member.task.role != Role::kWorker) return;
  Standing& standing = standings_.Of(member);
  standing.evaluates = config_.eval.on == EvalOn::kTest ? said.has_test() : said.has_validation();
  if (data_ && data_from_ < member.task.index) return;
  data_ = DecodeFacts(said);
  data_from_ = member.task.index;
  if (said.inputs() == nullptr || data_->form) return;
  log_.Warning("names and scale of the data are not known here: what {} says of them is not valid",
               TaskName(member.task));
}

void Coordinator::Start(Member& member, uint64_t request) {
  starts_.Tell(member, request, phase_ == RunPhase::kEnded || all_done_);
  if (!standings_.Of(member).takes_part) return;
  history_.took_part.resize(config_.cluster.worker.size());
  history_.took_part[static_cast<size_t>(member.task.index)] = true;
}

void Coordinator::BeginWhenEnoughAreReady() {
  if (phase_ != RunPhase::kJoining) return;
  const std::optional<StartBarrier::Enough> enough = barrier_.Look(Clock::now());
  if (!enough) return;
  phase_ = RunPhase::kInitialising;
  disturbed_ = history_.disturbed || !enough->all;
  for (const Member& member : members_.all()) {
    standings_.Of(member).takes_part = member.task.role == Role::kWorker && standings_.IsReady(member);
  }
  fill_(history_.begun, data_);
}

void Coordinator::OnFilled(const StartedFrom& from) {
  TakeStart(from);
  const bool restored = !from.path.empty();
  if (restored) history_.checkpoint = ShortText(from.path);
  if (restored) history_.checkpoint_step = from.step;
  if (saves_ != nullptr && restored) saves_->set_saved(from.step);
  const std::string& resume = config_.checkpoint.resume;
  // The newest one of the directory is not this run's: it could not go back to that.
  const bool elsewhere = !history_.begun && resume != "auto" && resume != "never";
  if (saves_ != nullptr && (!restored || elsewhere)) return saves_->Ask(false);  // OnSaved() goes on
  StartAll();
}

void Coordinator::TakeStart(const StartedFrom& from) {
  positions_.Take(from.positions, from.step);
  history_.from_initial = !history_.begun && from.path.empty();
  history_.inputs = from.inputs;
  history_.scale = from.scale;
  if (data_ && data_->read) history_.data = {data_->rows.value_or(0), data_->labels};
  if (history_.first_step < 0) {
    history_.first_step = positions_.first_step();
    history_.first_nanos = WallNanos();
    history_.first_examples = positions_.first_examples();
  }
  steps_.BeginAt(positions_.first_step());
  begin_at_(positions_.first_step());
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

Loss Coordinator::WhatIfLost(const Member& member) const {
  const Standing& standing = standings_.Of(member);
  LossCase lost;
  lost.role = member.task.role;
  lost.phase = phase_;
  lost.feeds = members_.FeedsOthers(member);
  lost.takes_part = standing.takes_part;
  lost.awaited = standings_.IsAwaited(member);
  lost.done = standing.done;
  lost.others = std::any_of(members_.all().begin(), members_.all().end(), [&](const Member& other) {
    return &other != &member && other.here() && standings_.Of(other).takes_part;
  });
  return DecideLoss(config_, lost);
}

void Coordinator::Tick(TimePoint now) {
  if (const std::string why = stop_.Overdue(now); !why.empty()) EndStopped(why);
  if (phase_ == RunPhase::kJoining) BeginWhenEnoughAreReady();
  if (phase_ == RunPhase::kJoining) return barrier_.Check(now);
  if (begun()) standings_.CheckAwaited(now);
  if (phase_ != RunPhase::kRunning) return;
  CloseWhenAllDone(now);  // who may return has not, in time
  end_.Tick(now);
  EndWhenComplete(now);
}

}  // namespace dtrain
