#include "trainer/ps/coordinator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/plural.h"
#include "base/signal_name.h"
#include "trainer/config/determinism.h"
#include "trainer/ps/save_desk.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kStatusEvery{5000};
constexpr size_t kLongestReport = 256 * 1024;
// The summary, which has to fit into a header.
constexpr size_t kLongestEnd = net::kMaxHeaderBytes - 64 * 1024;
// What a peer says of a loss is bounded, so that sums of it fit.
constexpr uint64_t kMostQuietMs = 1000000000;
constexpr uint64_t kMostSteps = (uint64_t{1} << 62) - 1;
// Of failure.grace_s: the rest is for ending.
constexpr double kSavingShare = 0.9;
// How long ps 0 stays after the end for those who have not said Bye.
constexpr milliseconds kFarewell{3000};

milliseconds Seconds(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

}  // namespace

Coordinator::Coordinator(const Config& config, Membership& members, Outbox& outbox, Logger& log,
                         RunHistory& history)
    : config_(config),
      members_(members),
      outbox_(outbox),
      log_(log),
      history_(history),
      chief_(config, members, history),
      grants_(config.train.steps),
      standings_(members.all().size()),
      begun_(Clock::now()),
      next_status_(begun_ + kStatusEvery),
      desk_(config, members, outbox) {}

void Coordinator::set_saves(SaveDesk* saves) {
  saves_ = saves;
  saves->set_ended([this](const std::string& error) { OnSaved(error); });
}

Coordinator::Standing& Coordinator::StandingOf(const Member& member) {
  return standings_[static_cast<size_t>(&member - members_.all().data())];
}

const Coordinator::Standing& Coordinator::StandingOf(const Member& member) const {
  return standings_[static_cast<size_t>(&member - members_.all().data())];
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
      OnNeedStep(member, number);
      return true;
    case Body::Done:
      OnDone(member, number, *request.body_as_Done());
      return true;
    case Body::WaitAllDone:
      OnWaitAllDone(member, number);
      return true;
    case Body::Report:
      OnReport(member, number, *request.body_as_Report());
      return true;
    case Body::WaitEnd:
      OnWaitEnd(member, number, *request.body_as_WaitEnd());
      return true;
    case Body::Bye:
      StandingOf(member).told = true;
      return true;
    default:
      return false;
  }
}

void Coordinator::OnReady(Member& member, uint64_t request, const wire::Ready& ready) {
  Standing& standing = StandingOf(member);
  standing.ready = true;
  if (phase_ == Phase::kJoining && ready.returning()) NoteReturning(ready);
  if (phase_ == Phase::kRunning || phase_ == Phase::kEnded) {
    Start(member, request);
  } else if (phase_ == Phase::kInitialising && IsChief(member)) {
    SendInitialise(member, request);  // asked again, or a chief that came back before it was done
  } else {
    standing.ready_request = request;
    BeginWhenEnoughAreReady();
  }
}

// It was in this run before ps 0 was: the run goes on, and what it knows of the loss is all there is.
void Coordinator::NoteReturning(const wire::Ready& ready) {
  const auto quiet = milliseconds(static_cast<int64_t>(std::min<uint64_t>(ready.quiet_ms(), kMostQuietMs)));
  if (!history_.begun || history_.lost_since > Clock::now() - quiet)
    history_.lost_since = Clock::now() - quiet;
  history_.begun = true;
  history_.lost_step = std::max(history_.lost_step, static_cast<int64_t>(ready.global_step() & kMostSteps));
}

void Coordinator::NoteLoss() {
  history_.lost_step = std::max(history_.lost_step, global_step());
  if (history_.lost_since == TimePoint()) history_.lost_since = Clock::now();
  history_.disturbed |= disturbed_;
  history_.here.clear();
  for (const Member& member : members_.all()) {
    if (member.task.role == Role::kWorker) history_.here.push_back(StandingOf(member).takes_part);
  }
}

// How many workers a run needs to begin, or to go on: then those that took part, for some time; after that it
// goes on without those that it can do without.
int64_t Coordinator::LeastToBegin(TimePoint now) const {
  if (!history_.begun) return members_.least_workers();
  const auto workers = static_cast<int64_t>(config_.cluster.worker.size());
  if (config_.failure.worker_lost == WorkerLost::kWait) {
    return std::max(members_.least_workers(), std::count(history_.here.begin(), history_.here.end(), true));
  }
  if (WaitedLong(now) && config_.failure.worker_lost == WorkerLost::kContinue) return 1;
  if (history_.here.empty()) return members_.least_workers();
  return std::clamp<int64_t>(std::count(history_.here.begin(), history_.here.end(), true), 1, workers);
}

bool Coordinator::WaitedLong(TimePoint now) const {
  return others_ready_ != TimePoint() && now - others_ready_ > 2 * Seconds(config_.failure.detect_s);
}

// Null: none yet. Worker 0 is given some time to come back.
Member* Coordinator::ChooseChief(TimePoint now) {
  Member& first = members_.At({Role::kWorker, 0});
  if (IsReady(first)) return &first;
  if (!WaitedLong(now)) return nullptr;
  for (int64_t index = 1; Member* member = members_.Worker(index); ++index) {
    if (IsReady(*member)) return member;
  }
  return nullptr;
}

void Coordinator::BeginWhenEnoughAreReady() {
  if (phase_ != Phase::kJoining) return;
  size_t ready = 0;
  int64_t workers = 0;
  for (const Member& member : members_.all()) {
    const bool is_ready = IsReady(member), worker = member.task.role == Role::kWorker;
    if (!is_ready && (!worker || chief_.NeedsToBegin(member))) return;
    ready += is_ready ? 1 : 0;
    workers += is_ready && worker ? 1 : 0;
  }
  const TimePoint now = Clock::now();
  if (others_ready_ == TimePoint()) others_ready_ = now;
  if (workers < LeastToBegin(now)) return;
  Member* const chief = ChooseChief(now);
  if (chief == nullptr) return;
  chief_.BeginWith(*chief);
  if (chief->task.index != 0) log_.Warning("{} is the chief: worker 0 is not here", TaskName(chief->task));
  phase_ = Phase::kInitialising;
  const size_t all = members_.all().size();
  disturbed_ = history_.disturbed || ready < all;
  log_.Info("{} {} tasks are here after {:.2f} s{}", ready < all ? fmt::format("{} of", ready + 1) : "all",
            all + 1, SecondsSince(begun_), ready < all ? "; the others may join at any time" : "");
  for (Member& member : members_.all()) {
    StandingOf(member).takes_part = member.task.role == Role::kWorker && IsReady(member);
  }
  SendInitialise(*chief, StandingOf(*chief).ready_request);
}

void Coordinator::SendInitialise(const Member& member, uint64_t request) {
  StandingOf(member).ready_request = 0;
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateStart(builder, 0, true, 0, 0, 0, false, 0, false, history_.begun, 0, chief_.term());
  });
}

// There is nothing left to do for it, and nobody waits for its results.
bool Coordinator::ComesTooLate(const Member& member) const {
  if (member.task.role != Role::kWorker || IsChief(member)) return false;
  const Standing& standing = StandingOf(member);
  if (phase_ == Phase::kEnded || all_done_) return true;
  const bool waited_for = standing.lost && config_.failure.worker_lost == WorkerLost::kWait;
  return grants_.over() && !standing.takes_part && !waited_for;
}

void Coordinator::Start(Member& member, uint64_t request) {
  Standing& standing = StandingOf(member);
  standing.ready_request = 0;
  if (ComesTooLate(member)) {
    standing.told = false;
    return SendOver(member, request);
  }
  const bool worker = member.task.role == Role::kWorker;
  const bool steps_on = worker && !standing.done;
  StartPoint point;
  if (worker) {
    standing.takes_part = true;
    standing.lost = false;
    point = start_point_(member);
  }
  if (steps_on && !sync() && standing.open_steps == 0) Grant(member, config_.train.in_flight);
  uint32_t steps = static_cast<uint32_t>(standing.open_steps);
  if (steps_on && sync()) steps = point.again ? 1 : GrantNext(member);
  const std::vector<uint32_t> together = StartingTogether();
  outbox_.Send(member.node, request, [&](auto& builder) {
    const auto dealt = positions_.dealt == Dealt() ? 0 : builder.CreateString(ToJson(positions_.dealt));
    return wire::CreateStart(builder, steps, false, static_cast<uint64_t>(point.local_step),
                             builder.CreateVector(together), point.clock, point.resume, point.version, false,
                             false, dealt, IsChief(member) ? chief_.term() : 0);
  });
}

void Coordinator::SendOver(const Member& member, uint64_t request) {
  log_.Info("{} came when the run was over", TaskName(member.task));
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateStart(builder, 0, false, static_cast<uint64_t>(member.taken), 0, 0, false, 0, true);
  });
}

// Answered with the chief's Start, when the run begins.
void Coordinator::OnInitialised(Member& member, uint64_t request, const wire::Initialised& done) {
  if (!IsChief(member)) return;
  if (phase_ == Phase::kRunning) return Start(member, request);
  if (phase_ != Phase::kInitialising) return;
  const bool repeated = std::exchange(StandingOf(member).ready_request, request) != 0;
  if (repeated) return;
  TakePositions(done);
  const bool restored = done.restored() != nullptr;
  if (restored) history_.checkpoint = ShortText(done.restored()->str());
  if (saves_ != nullptr && restored) saves_->set_saved(first_step_);
  if (saves_ != nullptr && !restored) return saves_->Ask(false);  // OnSaved() goes on
  StartAll();
}

void Coordinator::TakePositions(const wire::Initialised& done) {
  if (done.positions() != nullptr) FromJson(done.positions()->str(), &positions_);
  const auto workers = config_.cluster.worker.size();
  positions_.local_steps.resize(workers);
  positions_.examples.resize(workers);
  for (size_t worker = 0; worker < workers; ++worker) {
    Member& member = *members_.Worker(static_cast<int64_t>(worker));
    member.taken = positions_.local_steps[worker];
    StandingOf(member).result.examples = positions_.examples[worker];
  }
  first_step_ = static_cast<int64_t>(done.step() & kMostSteps);
  if (history_.first_step < 0) {
    history_.first_step = first_step_;
    history_.first_examples =
        std::accumulate(positions_.examples.begin(), positions_.examples.end(), positions_.other_examples);
  }
  grants_ = StepGrants(config_.train.steps, first_step_);
  begin_at_(first_step_);
}

std::string Coordinator::PositionsNow() const {
  Positions now = positions_;
  const size_t first = members_.all().size() - now.local_steps.size();
  for (size_t worker = 0; worker < now.local_steps.size(); ++worker) {
    const Member& member = members_.all()[first + worker];
    now.local_steps[worker] = member.taken;
    now.examples[worker] = StandingOf(member).result.examples;
  }
  return ToJson(now);
}

void Coordinator::StartAll() {
  phase_ = Phase::kRunning;
  history_.begun = true;
  if (saves_ != nullptr) saves_->Run();
  if (on_begun_) on_begun_();
  for (Member& other : members_.all()) {
    if (const uint64_t waiting = StandingOf(other).ready_request) Start(other, waiting);
  }
}

uint32_t Coordinator::Grant(Member& member, int64_t wanted) {
  const int64_t steps = grants_.Take(wanted);
  StandingOf(member).open_steps += steps;
  return static_cast<uint32_t>(steps);
}

void Coordinator::StepApplied(Member& member, int64_t examples) {
  --StandingOf(member).open_steps;
  CountExamples(member, examples);
  CountStep();
}

void Coordinator::RoundApplied() {
  grants_.Take(1);
  CountStep();
}

void Coordinator::CountStep() {
  if (first_applied_nanos_ == 0) first_applied_nanos_ = WallNanos();
  if (history_.lost_since != TimePoint()) NoteRecovered();
  grants_.Applied();
  if (saves_ != nullptr) saves_->OnStep();
  if (grants_.over()) ServeWaitingSteps();
}

// The first step after a loss.
void Coordinator::NoteRecovered() {
  const int64_t lost = std::max<int64_t>(0, history_.lost_step - global_step());
  log_.Info("stepping again {:.2f} s after the loss, from global step {}: {} of {} lost",
            SecondsSince(history_.lost_since), global_step(), Plural(lost, "step"), history_.lost_step);
  history_.lost_since = TimePoint();
  history_.lost_step = 0;
}

void Coordinator::EndEarly(std::optional<int64_t> rounds) {
  grants_.EndEarly(rounds ? *rounds - global_step() : 0);
  ServeWaitingSteps();
}

// In sync a step is the round's, not its worker's: the grant only lets the worker take part.
uint32_t Coordinator::GrantNext(Member& member) {
  if (sync()) return grants_.over() ? 0 : 1;
  if (stop_signal_ != 0) return 0;  // what comes after the last checkpoint is lost
  return Grant(member, 1);
}

// Empty once a step was applied: whoever starts then joins those that are under way. One that is lost already
// is among them when rounds wait for it.
std::vector<uint32_t> Coordinator::StartingTogether() const {
  std::vector<uint32_t> workers;
  if (global_step() > first_step_) return workers;
  const bool waits = config_.failure.worker_lost == WorkerLost::kWait;
  for (const Member& member : members_.all()) {
    const Standing& standing = StandingOf(member);
    if (standing.takes_part || (standing.lost && waits)) {
      workers.push_back(static_cast<uint32_t>(member.task.index));
    }
  }
  return workers;
}

void Coordinator::OnNeedStep(Member& member, uint64_t request) {
  uint32_t& steps = member.GrantOf(request);
  if (steps == 0) steps = GrantNext(member);
  if (steps == 0 && !grants_.over()) {
    StandingOf(member).step_request = request;  // answered when a step comes back or the last is applied
    return;
  }
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateGrant(builder, steps, steps == 0, static_cast<uint64_t>(global_step()));
  });
}

void Coordinator::ServeWaitingSteps() {
  for (Member& member : members_.all()) {
    const uint64_t request = StandingOf(member).step_request;
    if (request == 0 || !member.here()) continue;
    StandingOf(member).step_request = 0;
    OnNeedStep(member, request);
  }
}

void Coordinator::OnDone(Member& member, uint64_t request, const wire::Done& done) {
  Standing& standing = StandingOf(member);
  outbox_.Ack(member.node, request);
  grants_.GiveBack(standing.open_steps);
  standing.open_steps = 0;
  ServeWaitingSteps();
  if (standing.done) return;
  standing.done = true;
  standing.result.Take(done);
  log_.Info("{} is done: {}", TaskName(member.task), Plural(standing.result.local_steps, "local step"));
  AnswerWhenAllDone();
}

void Coordinator::AnswerWhenAllDone() {
  Member& chief = chief_.member();
  if (const uint64_t waiting = StandingOf(chief).all_done_request) OnWaitAllDone(chief, waiting);
}

// Nobody who takes part, or is waited for, has still something to do.
bool Coordinator::AllDone() const {
  const bool waits = config_.failure.worker_lost == WorkerLost::kWait;
  return std::none_of(standings_.begin(), standings_.end(), [&](const Standing& standing) {
    return !standing.done && (standing.takes_part || (standing.lost && waits));
  });
}

void Coordinator::OnWaitAllDone(Member& member, uint64_t request) {
  StandingOf(member).all_done_request = request;
  if (!AllDone()) return;
  if (saves_ != nullptr && !all_done_) {
    saves_->Close();
    if (!saves_->HasAllOf(global_step())) saves_->Ask(true);
  }
  all_done_ = true;
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateAllDone(builder, static_cast<uint64_t>(global_step()));
  });
}

void Coordinator::OnReport(Member& member, uint64_t request, const wire::Report& report) {
  if (!IsChief(member)) return;
  if (phase_ == Phase::kRunning) {
    const bool too_long = report.json()->size() > kLongestReport;
    if (too_long || !FromWireJson(report.json()->str(), &summary_)) {
      return outbox_.Refuse(member.node, request, wire::Reason::BadRequest, "the report is not one");
    }
    Complete(&summary_);
    if (sync() && disturbed_) {
      log_.Info("not the weights of an undisturbed run: rounds went on without a worker, or before it came");
    }
    reported_ = true;
    EndWhenSaved();
  }
  outbox_.Ack(member.node, request);
}

void Coordinator::EndWhenSaved() {
  if (phase_ != Phase::kRunning || !reported_ || (saves_ != nullptr && !saves_->idle())) return;
  if (!history_.checkpoint.empty()) summary_.checkpoint = history_.checkpoint;
  summary_json_ = ToWireJson(summary_);
  if (summary_json_.size() > kLongestEnd) {
    log_.Warning("too many workers: where the time of each went is left out of the result");
    summary_.workers.clear();
    summary_json_ = ToWireJson(summary_);
  }
  phase_ = Phase::kEnded;
  ended_ = Clock::now();
  for (Member& other : members_.all()) {
    if (StandingOf(other).end_request != 0) SendEnd(other);
  }
}

// A checkpoint that was ordered is complete, or failed: with the first and the last one, and after a signal,
// so does the run.
void Coordinator::OnSaved(const std::string& error) {
  if (stop_signal_ != 0) EndStopped(error);
  const bool needed = phase_ == Phase::kInitialising || all_done_;
  if (needed && !error.empty()) {
    throw IoError("the {} checkpoint could not be written: {}", all_done_ ? "last" : "first", error);
  }
  if (phase_ == Phase::kInitialising) return StartAll();
  EndWhenSaved();
}

void Coordinator::Stop(int signal) {
  if (stop_signal_ != 0 || phase_ == Phase::kEnded) return;
  stop_signal_ = signal;
  stop_deadline_ = Clock::now() + Seconds(config_.failure.grace_s * kSavingShare);
  log_.Warning("{}: the run is saved and ends", SignalName(signal));
  if (phase_ == Phase::kJoining) EndStopped("");
  if (saves_ == nullptr) EndStopped("there is no checkpoint.dir");
  if (phase_ == Phase::kInitialising && saves_->idle()) EndStopped("");
  if (phase_ == Phase::kInitialising) return;  // the first checkpoint is being written
  if (saves_->idle() && saves_->HasAllOf(global_step())) EndStopped("");
  saves_->Close();
  saves_->Ask(true);
}

// `unsaved`: why what there is was not saved; empty: it was.
void Coordinator::EndStopped(const std::string& unsaved) {
  const bool kept = unsaved.empty() && !config_.checkpoint.dir.empty();
  RunSummary summary;
  summary.status = "stopped";
  // Outside sync a few gradients that were under way come after the checkpoint.
  const bool known = kept && saves_ != nullptr && saves_->saved_step() >= 0;
  summary.global_step = known ? saves_->saved_step() : global_step();
  for (const Member& member : members_.all()) {
    if (member.task.role == Role::kWorker) summary.local_steps.push_back(member.taken);
  }
  const std::string name = SignalName(stop_signal_);
  if (!history_.checkpoint.empty()) summary.checkpoint = history_.checkpoint;
  if (kept && starting() && history_.checkpoint.empty()) {
    throw RunStopped(static_cast<ExitCode>(128 + stop_signal_),
                     fmt::format("stopped by {} before a step was taken; what is in {} stays as it is", name,
                                 config_.checkpoint.dir),
                     std::move(summary));
  }
  const std::string newest = history_.checkpoint.empty() ? "there is no checkpoint"
                                                         : "the newest checkpoint is " + history_.checkpoint;
  if (!kept) {
    throw RunStopped(
        ExitCode::kInternal,
        fmt::format("stopped by {} at global step {}; nothing was saved: {}; {}", name, summary.global_step,
                    unsaved.empty() ? "there is no checkpoint.dir" : unsaved, newest),
        std::move(summary));
  }
  throw RunStopped(static_cast<ExitCode>(128 + stop_signal_),
                   fmt::format("stopped by {} at global step {}; {}", name, summary.global_step, newest),
                   std::move(summary));
}

void Coordinator::Complete(RunSummary* summary) const {
  const bool nothing_left = global_step() == history_.first_step && global_step() > 0;
  summary->status = nothing_left ? "already_done" : "done";
  summary->deterministic = !disturbed_ && FirstNondeterministicKey(config_).empty();
  summary->global_step = global_step();
  std::vector<WorkerResult> results;
  for (const Member& member : members_.all()) {
    if (member.task.role != Role::kWorker) continue;
    const Standing& standing = StandingOf(member);
    results.push_back(standing.result);
    if (standing.done) continue;
    results.back().local_steps = member.taken;
    const bool took_part = standing.takes_part || standing.lost || member.taken > 0;
    (took_part ? summary->lost_workers : summary->absent_workers).push_back(member.task.index);
  }
  summary->examples = positions_.other_examples;
  SumUp(results, first_applied_nanos_, {history_.first_step, history_.first_examples}, summary);
}

void Coordinator::OnWaitEnd(Member& member, uint64_t request, const wire::WaitEnd& question) {
  Standing& standing = StandingOf(member);
  if (request < standing.end_request) return;  // an old one that came again
  // It had nothing left to do when the chief was lost.
  if (IsChief(member) && phase_ == Phase::kRunning && !reported_) return SendBecomeChief(member, request);
  standing.end_request = request;
  if (phase_ == Phase::kEnded) return SendEnd(member);
  if (member.task.role == Role::kPs) desk_.Ask(member, request, question);
}

void Coordinator::SendEnd(const Member& member) {
  outbox_.Send(member.node, StandingOf(member).end_request,
               [&](auto& builder) { return wire::CreateEnd(builder, builder.CreateString(summary_json_)); });
}

void Coordinator::Left(Member& member) {
  Standing& standing = StandingOf(member);
  grants_.GiveBack(standing.open_steps);
  standing.open_steps = 0;
  standing.ready = false;
  if (standing.takes_part && begun() && (!standing.done || IsChief(member))) {
    standing.lost = true;
    chief_lost_ |= IsChief(member);
    standing.lost_at = Clock::now();
    // A chief that comes back knows nothing of its earlier evaluations.
    disturbed_ |= !RoundsWaitForLost(config_) || (IsChief(member) && config_.eval.patience > 0);
  }
  standing.takes_part = false;
  standing.ready_request = standing.step_request = standing.all_done_request = standing.end_request = 0;
  if (member.task.role == Role::kPs) desk_.Forget(member);
  if (phase_ == Phase::kEnded) standing.told = true;
  ServeWaitingSteps();
  AnswerWhenAllDone();
}

// One that takes part: it is at its steps, or has taken the last and waits.
Member* Coordinator::Successor() const {
  return chief_.Successor([this](const Member& member) { return StandingOf(member).takes_part; });
}

void Coordinator::PassChiefOn() {
  if (!std::exchange(chief_lost_, false)) return;
  const TaskId lost = chief_.member().task;
  Member* const next = phase_ == Phase::kRunning ? Successor() : nullptr;
  chief_.PassOnTo(next);
  if (saves_ != nullptr) saves_->ForgetSaver();
  if (next == nullptr) return;
  log_.Warning("{} is lost; {} is the chief from now on (term {})", TaskName(lost), TaskName(next->task),
               chief_.term());
  reported_ = false;
  if (saves_ != nullptr) saves_->BeginAnew(all_done_ || stop_signal_ != 0);
  if (const uint64_t waiting = std::exchange(StandingOf(*next).end_request, 0)) {
    SendBecomeChief(*next, waiting);
  }
}

void Coordinator::SendBecomeChief(const Member& member, uint64_t request) {
  outbox_.Send(member.node, request,
               [&](auto& builder) { return wire::CreateBecomeChief(builder, chief_.term()); });
}

// With failure.worker_lost: continue. The values that the ps have by then may be half of a checkpoint.
Coordinator::Loss Coordinator::IfChiefIsLost() const {
  if (phase_ == Phase::kInitialising) {
    return history_.begun && HasSpareChiefs(config_) ? Loss::kRollsBack : Loss::kEnds;
  }
  return Successor() != nullptr ? Loss::kGoesOn : Loss::kEnds;
}

Coordinator::Loss Coordinator::WhatIfLost(const Member& member) const {
  if (!begun()) return Loss::kGoesOn;
  if (member.task.role == Role::kPs) return RecoversPs(config_) ? Loss::kRollsBack : Loss::kEnds;
  const Standing& standing = StandingOf(member);
  // Nobody else has data then, and those that it fed have given up by the time it is back.
  if (IsChief(member) && FeedsOthers(config_)) return Loss::kEnds;
  const bool waited_for = standing.lost && config_.failure.worker_lost == WorkerLost::kWait;
  const bool needed = IsChief(member) || (!standing.done && (standing.takes_part || waited_for));
  if (!needed) return Loss::kGoesOn;
  switch (config_.failure.worker_lost) {
    case WorkerLost::kContinue:
      return IsChief(member) ? IfChiefIsLost() : Loss::kGoesOn;
    case WorkerLost::kWait:
      return Loss::kWaits;
    case WorkerLost::kFail:
      break;
  }
  return Loss::kEnds;
}

std::string Coordinator::Status() const {
  if (phase_ != Phase::kJoining) return std::string();
  std::string unready;
  for (size_t i = 0; i < standings_.size(); ++i) {
    const Member& member = members_.all()[i];
    if (!member.here() || standings_[i].ready) continue;
    unready += (unready.empty() ? "" : ", ") + TaskName(member.task);
  }
  const std::string missing = members_.Missing();
  return fmt::format("joined {} of {}{}{}{}{}", members_.joined() + 1, members_.all().size() + 1,
                     missing.empty() ? "" : "; missing: ", missing,
                     unready.empty() ? "" : "; still preparing: ", unready);
}

void Coordinator::Tick(TimePoint now) {
  if (stop_signal_ != 0 && now > stop_deadline_) {
    EndStopped(fmt::format("it took longer than {:.1f} s (failure.grace_s)",
                           config_.failure.grace_s * kSavingShare));
  }
  if (phase_ == Phase::kJoining) return CheckStart(now);
  if (begun() && config_.failure.worker_lost == WorkerLost::kWait) CheckLost(now);
}

void Coordinator::CheckLost(TimePoint now) {
  for (const Member& member : members_.all()) {
    const Standing& standing = StandingOf(member);
    if (!standing.lost || member.here() || now - standing.lost_at <= Seconds(config_.failure.wait_s))
      continue;
    throw PeerLost("{} was lost and is not back after {} s (failure.wait_s). Look at its log.",
                   members_.NameOf(member), config_.failure.wait_s);
  }
}

void Coordinator::CheckStart(TimePoint now) {
  BeginWhenEnoughAreReady();
  if (phase_ != Phase::kJoining) return;
  const char* const key = history_.begun ? "failure.wait_s" : "failure.startup_timeout_s";
  const double most = history_.begun ? config_.failure.wait_s : config_.failure.startup_timeout_s;
  if (!members_.Missing().empty() && now - begun_ > Seconds(most)) {
    throw PeerLost("not all tasks came in {} s ({}); {}. Start them, or look at their logs.", most, key,
                   Status());
  }
  if (now < next_status_) return;
  next_status_ = now + kStatusEvery;
  log_.Info("waiting: {}", Status());
}

bool Coordinator::Finished(TimePoint now) const {
  if (phase_ != Phase::kEnded) return false;
  if (now - ended_ > kFarewell) return true;
  for (size_t i = 0; i < standings_.size(); ++i) {
    if (members_.all()[i].here() && !standings_[i].told) return false;
  }
  return true;
}

}  // namespace dtrain
