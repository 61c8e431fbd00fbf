#include "trainer/ps/save_desk.h"

#include <algorithm>
#include <utility>

#include "base/fault_point.h"

namespace dtrain {
namespace {

// How often a ps that has not answered is asked again for its cut, or for what it has to write.
constexpr milliseconds kAskAgain{100};

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

SaveDesk::SaveDesk(const Parts& parts) : parts_(parts), kept_(parts.config.cluster.ps.size()) {}

void SaveDesk::Run() {
  running_ = true;
  next_due_ = Clock::now() + Seconds(parts_.config.checkpoint.every_secs);
}

void SaveDesk::Ask(bool stays) {
  asked_ = true;
  stays_ |= stays;
  if (phase_ == Phase::kIdle) Begin();
}

void SaveDesk::Finish() {
  Close();
  finished_ = true;
  if (!HasAllOf(parts_.global_step())) Ask(true);
}

// Behind the last one nothing is applied that it does not have.
void SaveDesk::OnSave() {
  if (!stays_) Ask(false);
}

void SaveDesk::AskBest(const EvaluationFigures& figures) {
  if (stays_) return;
  asked_best_ = figures;
  Ask(false);
}

void SaveDesk::Begin() {
  asked_ = false;
  best_ = std::exchange(asked_best_, std::nullopt);
  phase_ = Phase::kCutting;
  ++parts_.history.last_save;
  kept_here_ = false;
  std::fill(kept_.begin(), kept_.end(), false);
  kept_[0] = true;
  held_since_ = Clock::now();
  deadline_ = held_since_ + Seconds(parts_.config.checkpoint.timeout_s);
  round_ = parts_.rule.HoldRounds();
  parts_.keeper.Take(parts_.history.last_save, round_);
}

// With the rounds up to this one applied, or at this moment: what is kept here is of this step.
void SaveDesk::OnKept() {
  if (phase_ != Phase::kCutting || kept_here_) return;
  kept_here_ = true;
  step_ = parts_.global_step();
  positions_ = parts_.positions();
  AskForCuts(Clock::now());
  GoOnWhenAllAreKept();
}

void SaveDesk::AskForCuts(TimePoint now) {
  next_question_ = now + kAskAgain;
  for (size_t ps = 1; ps < kept_.size(); ++ps) {
    const Member& member = parts_.members.At({Role::kPs, static_cast<int>(ps)});
    const bool write = phase_ == Phase::kWriting;
    if ((write ? !parts_.joint.Wants(ps) : kept_[ps]) || !member.here()) continue;
    parts_.outbox.Send(member.node, 0, [&](auto& builder) {
      return wire::CreateCut(builder, parts_.history.last_save, round_, false, static_cast<uint64_t>(step_),
                             write);
    });
  }
}

void SaveDesk::OnCutState(const Member& ps, const wire::CutState& state) {
  if (phase_ == Phase::kIdle || state.number() != parts_.history.last_save) return;
  const auto index = static_cast<size_t>(ps.task.index);
  if (phase_ == Phase::kWriting) {
    return parts_.joint.OnPart(index, parts_.members.NameOf(ps), state);
  }
  kept_[index] = true;
  GoOnWhenAllAreKept();
}

void SaveDesk::OnPiece(const Member& ps, net::Message message) {
  if (phase_ == Phase::kWriting) parts_.joint.OnPiece(static_cast<size_t>(ps.task.index), std::move(message));
}

void SaveDesk::GoOnWhenAllAreKept() {
  if (!kept_here_ || std::find(kept_.begin(), kept_.end(), false) != kept_.end()) return;
  phase_ = Phase::kWriting;
  writing_since_ = next_question_ = Clock::now();
  held_ms_ = SecondsBetween(held_since_, writing_since_) * 1000;
  LetRoundsGoOn();
  std::vector<bool> pulled(kept_.size());
  for (size_t ps = 1; ps < pulled.size(); ++ps) {
    pulled[ps] = !parts_.sees_directory(parts_.members.At({Role::kPs, static_cast<int>(ps)}));
  }
  parts_.joint.Begin(parts_.history.last_save, MomentOfCut(), parts_.keeper.cut(), std::move(pulled));
}

SavedMoment SaveDesk::MomentOfCut() const {
  const RunId run = parts_.history.run;
  SavedMoment moment{run.id, run.epoch, step_, positions_};
  if (best_) {
    moment.best = true;
    moment.loss = best_->loss;
    moment.accuracy = best_->accuracy;
  }
  moment.inputs = parts_.history.inputs;
  return moment;
}

// Behind the last one a worker that comes back, as the chief may, has to get its weights all the same.
void SaveDesk::LetRoundsGoOn() {
  if (finished_) return parts_.rule.CloseRounds();
  if (!stays_) parts_.rule.GoOn();
}

void SaveDesk::WatchJointSave(TimePoint now) {
  if (const std::optional<JointSave::Outcome> outcome = parts_.joint.Poll()) {
    return End(outcome->path, outcome->error);
  }
  if (parts_.joint.writing() && now >= next_question_) AskForCuts(now);
}

// A disk that hangs may hold the one that writes for ever.
void SaveDesk::GiveUp(TimePoint now) {
  const double most = parts_.config.checkpoint.timeout_s;
  const std::string error = fmt::format("it is not complete after {} s (checkpoint.timeout_s)", most);
  if (phase_ == Phase::kCutting) LetRoundsGoOn();
  if (phase_ == Phase::kCutting) return End("", error);
  deadline_ = now + Seconds(most);
  parts_.log.Error("the checkpoint of global step {} is given up: {}", step_, error);
  parts_.joint.GiveUp(error);
  if (ended_) ended_(error);  // what waits for it; another one cannot begin before this has ended
}

void SaveDesk::DropCuts() {
  parts_.keeper.Drop(parts_.history.last_save);
  for (size_t ps = 1; ps < kept_.size(); ++ps) {
    const Member& member = parts_.members.At({Role::kPs, static_cast<int>(ps)});
    parts_.outbox.Send(member.node, 0, [&](auto& builder) {
      return wire::CreateCut(builder, parts_.history.last_save, 0, true, 0);
    });
  }
}

void SaveDesk::End(const std::string& path, const std::string& error) {
  phase_ = Phase::kIdle;
  DropCuts();
  next_due_ = Clock::now() + Seconds(parts_.config.checkpoint.every_secs);
  if (path.empty()) {
    parts_.log.Error("the checkpoint of global step {} could not be written: {}", step_, error);
  } else {
    saved_again_ = saved_step_ == step_;
    saved_step_ = step_;
    restored_ = false;
    parts_.history.checkpoint = path;
    parts_.history.checkpoint_step = step_;
    parts_.log.Info("saved {} in {:.2f} s; steps were held for {:.1f} ms", path, SecondsSince(writing_since_),
                    held_ms_);
  }
  // In sync another one of the same step would be the same.
  const bool same = saved_step_ == parts_.global_step() && parts_.config.train.mode == TrainMode::kSync;
  if (asked_ && (!same || asked_best_)) return Begin();
  asked_ = false;
  if (ended_) ended_(path.empty() ? error : "");
}

// Saves of a run that waits would push out all others. A second one of a step has what was under way to other
// ps when the first was cut.
bool SaveDesk::NothingNew() const {
  const int64_t step = parts_.global_step();
  return HasAllOf(step) || (saved_step_ == step && saved_again_);
}

void SaveDesk::Tick(TimePoint now) {
  if (phase_ == Phase::kCutting && kept_here_ && now >= next_question_) AskForCuts(now);
  if (writing()) WatchJointSave(now);
  if (phase_ != Phase::kIdle && now > deadline_) GiveUp(now);
  const double every_secs = parts_.config.checkpoint.every_secs;
  if (phase_ != Phase::kIdle || !running_ || every_secs <= 0 || now < next_due_) return;
  next_due_ = now + Seconds(every_secs);
  if (!NothingNew()) Ask(false);
}

}  // namespace dtrain
