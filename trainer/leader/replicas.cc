#include "trainer/leader/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

// How often a ps that has not said that it knows its epoch is told again.
constexpr milliseconds kOrderAgain{100};

}  // namespace

Replicas::Replicas(const Config& config, TaskTable& members, Outbox& outbox, ReplicaLink* own, Logger& log)
    : config_(config),
      members_(members),
      outbox_(outbox),
      own_(own),
      log_(log),
      on_(config.failure.replicas > 0),
      notes_(on_ ? config.cluster.ps.size() : 0),
      behind_(notes_.size()) {}

size_t Replicas::HolderIndex(const Member& ps) const {
  return (static_cast<size_t>(ps.task.index) + 1) % config_.cluster.ps.size();
}

std::string Replicas::HolderOf(const Member& ps) const {
  return TaskName({Role::kPs, static_cast<int>(HolderIndex(ps))});
}

void Replicas::Begin() {
  begun_ = true;
  if (own_ != nullptr) own_->OnEpoch(notes_[0].epoch());
  next_order_ = TimePoint();
  Tick(Clock::now());
}

void Replicas::End() {
  begun_ = false;
  if (!recovery_) return;
  const Member& ps = *recovery_->ps;
  Recovered(*recovery_->ps);
  if (ps.here()) outbox_.Refuse(ps.node, 0, wire::Reason::Run, "the run has ended meanwhile");
}

void Replicas::Tell(const Member& ps) {
  if (!ps.is_ready()) return;
  outbox_.Answer(ps.node, 0, [&](auto& builder) {
    return wire::CreateOrder(builder, 0, 0, false, 0, NoteOf(ps).epoch());
  });
}

void Replicas::Tick(TimePoint now) {
  if (recovery_ && recovery_->tells.IsDue(now)) log_.Info("{}", WaitingText(now));
  if (own_ != nullptr && !given_up_) TendOwn(now);
  if (!on_ || !begun_ || now < next_order_) return;
  next_order_ = now + kOrderAgain;
  for (size_t ps = 1; ps < notes_.size(); ++ps) {
    if (!notes_[ps].counts()) Tell(members_.Ps(ps));
  }
}

// A holder that is here and cannot be reached would have the run stand still.
void Replicas::TendOwn(TimePoint now) {
  ReplicaNote& note = notes_[0];
  if (const std::optional<ReplicaLink::Report> report = own_->TakeReport(now)) {
    const bool counted = note.counts();
    behind_[0] = report->behind;
    note.OnReport(report->epoch, report->phase);
    if (note.counts() && !counted) log_.Detail("ps 0 has its replica on ps 1");
    if (report->phase == wire::ReplicaPhase::Broken)
      begun_ ? own_->OnEpoch(note.epoch()), void() : own_->GiveUp();
  }
  if (own_since_ == TimePoint() || !own_->stands_still() || recovery_) own_since_ = now;
  if (SecondsBetween(own_since_, now) <= config_.failure.wait_s) return;
  throw PeerLost(
      "{} is here, and has not taken the replica of ps 0 for {} s (failure.wait_s): it cannot be reached at "
      "its address. Look at its log.",
      members_.NameOf(members_.Ps(1)), config_.failure.wait_s);
}

void Replicas::GiveUp() {
  if (own_ == nullptr) return;
  given_up_ = true;
  own_->GiveUp();
}

void Replicas::TakeOver() {
  if (notes_.size() > 1) notes_.back().BeginNext();
  next_order_ = TimePoint();
}

bool Replicas::OnReport(const Member& ps, const wire::ReplicaState& state) {
  if (!on_ || !begun_) return true;
  ReplicaNote& note = NoteOf(ps);
  const uint64_t epoch = note.epoch();
  const bool counted = note.counts(), broken = state.phase() == wire::ReplicaPhase::Broken;
  if (state.epoch() == epoch) behind_[static_cast<size_t>(ps.task.index)] = state.behind();
  if (IsRecovering(ps)) return !broken || state.epoch() != epoch;
  note.OnReport(state.epoch(), state.phase());
  if (note.epoch() != epoch) {
    log_.Warning("{} has no replica: {} does not answer it; another one is begun", members_.NameOf(ps),
                 HolderOf(ps));
    Tell(ps);
  }
  if (note.counts() && !counted) log_.Detail("{} has its replica on {}", TaskName(ps.task), HolderOf(ps));
  return true;
}

std::string Replicas::WhyNot(const Member& ps) const {
  if (!on_ || !begun_ || ps.is_worker()) return "";
  const std::string holder = HolderOf(ps);
  if (recovery_ && !IsRecovering(ps)) {
    const std::string other = TaskName(recovery_->ps->task);
    if (other == holder) return fmt::format("; its replica was on {}, which is lost too", holder);
    if (HolderIndex(*recovery_->ps) == static_cast<size_t>(ps.task.index)) {
      return fmt::format("; it had the replica of {}, which is lost too", other);
    }
    return fmt::format("; {} is lost too, and replicas are for one ps at a time", other);
  }
  const size_t index = HolderIndex(ps);
  if (index > 0 && !members_.Ps(index).here()) {
    return fmt::format("; its replica was on {}, which is lost too", holder);
  }
  return NoteOf(ps).counts() ? "" : fmt::format("; its replica on {} does not count yet", holder);
}

// The replica that it held is gone with it.
void Replicas::Lost(Member& ps, TimePoint now) {
  if (!recovery_) recovery_ = Recovery{&ps, now, now, WaitPace(now)};
  recovery_->away_since = now;
  ps.fills = true;
  const auto before = static_cast<size_t>(ps.task.index) - 1;
  notes_[before].BeginNext();
  before == 0 ? own_->OnEpoch(notes_[0].epoch()) : Tell(members_.Ps(before));
}

TimePoint Replicas::Recovered(Member& ps) {
  ps.fills = false;
  return std::exchange(recovery_, std::nullopt)->since;
}

std::string Replicas::WhyOver(TimePoint now) const {
  const double max_s = config_.failure.wait_s;
  if (Away() != nullptr && Away()->never_back) {
    return members_.NameOf(*Away()) + " was lost, and nobody starts it again (failure.restarts)";
  }
  if (!recovery_ || recovery_->ps->here() || SecondsBetween(recovery_->away_since, now) <= max_s) return "";
  return fmt::format("{} was lost and is not back after {} s (failure.wait_s)",
                     members_.NameOf(*recovery_->ps), max_s);
}

std::string Replicas::LostText(TimePoint now) const {
  return fmt::format("{} was lost {:.1f} s ago", members_.NameOf(*recovery_->ps),
                     SecondsBetween(recovery_->away_since, now));
}

std::string Replicas::Awaited() const {
  if (!recovery_) return "";
  const Member& ps = *recovery_->ps;
  return fmt::format("{}, {} {}", TaskName(ps.task),
                     ps.here() ? "which fills itself from its replica on" : "whose replica is on",
                     HolderOf(ps));
}

std::string Replicas::WaitingText(TimePoint now) const {
  if (!recovery_) return "";
  const bool here = recovery_->ps->here();
  return "waits for " + Awaited() +
         (here ? "" : GivesUpInText(recovery_->away_since, config_.failure.wait_s, now));
}

std::vector<ReplicaFigures> Replicas::Figures() const {
  std::vector<ReplicaFigures> figures(notes_.size());
  for (size_t ps = 0; ps < notes_.size(); ++ps) {
    figures[ps] = {TaskName({Role::kPs, static_cast<int>((ps + 1) % notes_.size())}), notes_[ps].counts(),
                   notes_[ps].epoch(), behind_[ps]};
  }
  return figures;
}

}  // namespace dtrain
