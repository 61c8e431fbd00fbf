#include "trainer/ps/save_desk.h"

#include <algorithm>
#include <utility>

namespace dtrain {
namespace {

// How often a ps that has not answered is asked again for its cut, or for what it has to write.
constexpr milliseconds kAskAgain{100};
constexpr char kPsWrite[] = "checkpoint.writer is ps: each ps writes its own part";
constexpr char kOtherTerm[] = "it is not the chief any more, or not yet";

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

void SaveDesk::BeginAnew(bool stays) {
  if (parts_.joint != nullptr) return;  // the ps write it
  if (phase_ == Phase::kWriting) {
    parts_.log.Warning("the checkpoint of global step {} is dropped: its writer is lost", step_);
    DropCuts();
    phase_ = Phase::kIdle;
  }
  if (phase_ == Phase::kIdle) return Ask(stays);
  stays_ |= stays;  // the one that is being cut will be the new chief's
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
    if ((write ? parts_.joint->Has(ps) : kept_[ps]) || !member.here()) continue;
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
    if (parts_.joint) parts_.joint->OnPart(index, parts_.members.NameOf(ps), state);
    return;
  }
  kept_[index] = true;
  GoOnWhenAllAreKept();
}

void SaveDesk::GoOnWhenAllAreKept() {
  if (!kept_here_ || std::find(kept_.begin(), kept_.end(), false) != kept_.end()) return;
  phase_ = Phase::kWriting;
  writing_since_ = unasked_since_ = Clock::now();
  held_ms_ = SecondsBetween(held_since_, writing_since_) * 1000;
  LetRoundsGoOn();
  if (!parts_.joint) return SendOrder();
  next_question_ = writing_since_;
  SavedMoment moment{parts_.history.run.id, step_, positions_};
  if (best_) {
    moment.best = true;
    moment.loss = best_->loss;
    moment.accuracy = best_->accuracy;
  }
  moment.inputs = parts_.history.inputs;
  parts_.joint->Begin(parts_.history.last_save, std::move(moment), parts_.keeper.cut());
}

// Behind the last one a worker that comes back, as the chief may, has to get its weights all the same.
void SaveDesk::LetRoundsGoOn() {
  if (finished_) return parts_.rule.CloseRounds();
  if (!stays_) parts_.rule.GoOn();
}

void SaveDesk::SendOrder() {
  if (phase_ != Phase::kWriting || saver_ == 0) return;
  const EvaluationFigures figures = best_.value_or(EvaluationFigures());
  parts_.outbox.Send(saver_, saver_request_, [&](auto& builder) {
    return wire::CreateSaveOrder(builder, parts_.history.last_save, static_cast<uint64_t>(step_),
                                 builder.CreateString(positions_), best_.has_value(), figures.loss,
                                 figures.accuracy);
  });
}

// Whether the saver is not that of the chief, or the ps write; it is told then.
bool SaveDesk::RefusesSaver(net::NodeId from, uint64_t request, uint32_t term) {
  if (parts_.joint == nullptr && term == parts_.history.term) return false;
  parts_.outbox.Refuse(from, request, wire::Reason::BadRequest, parts_.joint ? kPsWrite : kOtherTerm);
  return true;
}

void SaveDesk::OnAskSave(net::NodeId from, uint64_t request, const wire::AskSave& question) {
  if (RefusesSaver(from, request, question.term())) return;
  saver_ = from;
  saver_request_ = request;
  const bool of_this = phase_ == Phase::kWriting && question.handled() == parts_.history.last_save;
  if (!of_this) return SendOrder();
  const std::string error = question.error() == nullptr ? "" : ShortText(question.error()->str());
  End(question.path() == nullptr ? "" : ShortText(question.path()->str()), error);
}

void SaveDesk::OnConfirm(net::NodeId from, uint64_t request, const wire::ConfirmSave& question) {
  if (RefusesSaver(from, request, question.term())) return;
  if (phase_ == Phase::kWriting && question.number() == parts_.history.last_save) {
    return parts_.outbox.Ack(from, request);
  }
  parts_.outbox.Refuse(from, request, wire::Reason::BadRequest, "this checkpoint is not wanted any more");
}

void SaveDesk::WatchJointSave(TimePoint now) {
  if (const std::optional<JointSave::Outcome> outcome = parts_.joint->Poll()) {
    return End(outcome->path, outcome->error);
  }
  if (parts_.joint->writing() && now >= next_question_) AskForCuts(now);
}

// The chief's saver asks all the time, where it has a directory. One by fail-over may have to end a step
// first.
bool SaveDesk::NobodyAsks(TimePoint now) {
  const Member* const chief = parts_.members.Worker(parts_.history.chief);
  if (parts_.joint != nullptr || saver_ != 0 || !chief->here()) unasked_since_ = now;
  return SecondsBetween(unasked_since_, now) > PatienceWithChief();
}

double SaveDesk::PatienceWithChief() const {
  const Config& config = parts_.config;
  return parts_.history.term > 1 ? config.failure.wait_s : static_cast<double>(config.net.timeout_ms) / 1000;
}

// A disk that hangs may hold the one that writes for ever.
void SaveDesk::GiveUp(TimePoint now) {
  const double most = parts_.config.checkpoint.timeout_s;
  const std::string error = fmt::format("it is not complete after {} s (checkpoint.timeout_s)", most);
  if (phase_ == Phase::kCutting) LetRoundsGoOn();
  if (parts_.joint == nullptr || phase_ == Phase::kCutting) return End("", error);
  deadline_ = now + Seconds(most);
  parts_.log.Error("the checkpoint of global step {} is given up: {}", step_, error);
  parts_.joint->GiveUp(error);
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
  if (writing_here()) WatchJointSave(now);
  if (phase_ != Phase::kIdle && now > deadline_) GiveUp(now);
  if (phase_ == Phase::kWriting && NobodyAsks(now)) {
    End("",
        fmt::format("worker {}, the chief, has not asked for it in {} s. Set checkpoint.dir for every worker",
                    parts_.history.chief, PatienceWithChief()));
  }
  const double every_secs = parts_.config.checkpoint.every_secs;
  if (phase_ != Phase::kIdle || !running_ || every_secs <= 0 || now < next_due_) return;
  next_due_ = now + Seconds(every_secs);
  if (!NothingNew()) Ask(false);
}

}  // namespace dtrain
