#include "trainer/leader/checkpoints.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/fault_point.h"
#include "base/names.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/replica_holder.h"
#include "trainer/shard/shared_directory.h"

namespace dtrain {
namespace {

// How often a ps that has not answered gets its order (to take a snapshot, or to write its part) again.
constexpr milliseconds kOrderAgain{100};

// How often a failure that stays the same is told again.
constexpr std::chrono::minutes kTellAgain{10};

// An error without its numbers, which differ from checkpoint to checkpoint.
std::string CauseOf(std::string error) {
  error.erase(std::remove_if(error.begin(), error.end(), [](char c) { return c >= '0' && c <= '9'; }),
              error.end());
  return error;
}

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Checkpoints::Checkpoints(const Parts& parts)
    : parts_(parts),
      config_(parts.leader.task.config),
      members_(parts.leader.members),
      outbox_(parts.leader.outbox),
      history_(parts.leader.history),
      own_(parts.leader.snapshots),
      log_(parts.leader.task.log),
      alone_(config_.cluster.ps.size() == 1),
      directory_(ShowSharedDirectory(config_, history_.run,
                                     history_.replica != 0 ? Claim::kOver
                                     : history_.begun      ? Claim::kAgain
                                                           : Claim::kNew,
                                     parts.leader.task.run_directory)),
      writer_(
          config_, parts.leader.task.layout, *directory_,
          fmt::format("{} on {}", TaskNameAndAddress(config_.cluster, {Role::kPs, 0}), HostName()), own_,
          [this](size_t ps, uint64_t of, Piece piece) { AskForPiece(members_.Ps(ps), of, piece); }, log_) {
  if (directory_->path() == config_.checkpoint.dir) return;
  log_.Warning("{} cannot be made: the run has its checkpoints in {}", config_.checkpoint.dir,
               directory_->path());
}

void Checkpoints::AskForPiece(const Member& ps, uint64_t number, Piece piece) {
  const Member* const carrier = CarrierOf(ps);
  if (carrier == nullptr || !carrier->here()) return;
  outbox_.Send(carrier->node, 0, [&](auto& builder) {
    return wire::CreateReadPiece(builder, number, static_cast<uint8_t>(piece.part),
                                 static_cast<uint64_t>(piece.number), IsHeld(ps));
  });
}

void Checkpoints::Run() {
  running_ = true;
  next_due_ = Clock::now() + Seconds(config_.checkpoint.every_secs);
}

void Checkpoints::Ask(bool stays) {
  asked_ = true;
  stays_ |= stays;
  if (stays_ && candidate_) EndCandidate();
  if (phase_ == Phase::kIdle) Begin();
}

void Checkpoints::Finish() {
  Close();
  finished_ = true;
  if (!HasAllOf(global_step())) Ask(true);
}

void Checkpoints::AskBest(const EvaluationFigures& figures) {
  asked_best_ = figures;
  Ask(false);
}

// No evaluation waits for a disk that hangs.
void Checkpoints::AskForCandidate(const Member& worker) {
  const bool hangs = writing() && given_up_;
  if (stays_ || hangs || (candidate_ && candidate_->worker == worker.task.index)) return;
  if (candidate_) EndCandidate();  // another worker evaluates from now on
  candidate_ = Candidate{worker.task.index};
  parts_.rounds.Hold();
  if (phase_ == Phase::kIdle) Begin();
}

bool Checkpoints::OnNeedSnapshot(const Member& worker, uint64_t request) {
  AskForCandidate(worker);
  if (!candidate_) return stays_;
  candidate_->request = request;
  if (phase_ == Phase::kEvaluating) AnswerEvaluator(number());
  return true;
}

void Checkpoints::AnswerEvaluator(uint64_t number) {
  const Member& worker = *members_.Worker(candidate_->worker);
  if (candidate_->request == 0 || !worker.here()) return;
  const FaultScope fault("evaluate.snapshot");
  outbox_.Answer(worker.node, candidate_->request, [&](auto& builder) {
    return wire::CreateGrant(builder, 0, false, static_cast<uint64_t>(step_), false, number);
  });
}

void Checkpoints::OnEvaluated(const Member& worker, const std::optional<EvaluationFigures>& best) {
  if (best && IsLostCandidate(evaluated_.number)) {
    holds_best_ = true;
    parts_.rounds.Hold();
    AskBest(*best);
  }
  evaluated_ = {};
  if (!candidate_ || candidate_->worker != worker.task.index) return;
  if (best && phase_ == Phase::kEvaluating) {
    candidate_.reset();
    is_candidate_ = false;
    best_ = best;
    deadline_ = Clock::now() + Seconds(config_.checkpoint.timeout_s);
    if (HasReplica(config_) && config_.train.mode == TrainMode::kSync) {
      holds_best_ = parts_.rounds.Hold() == round_;  // else rounds went on without the evaluator
      LetRoundsGoOn();
    }
    return Write();
  }
  EndCandidate();
  if (phase_ == Phase::kIdle) BeginNext("");
}

// Nobody evaluates it any more. A delta that is dropped leaves its chain as it was; a full one had ended it
// (ChooseBase), and the next checkpoint is full.
void Checkpoints::EndCandidate() {
  if (phase_ != Phase::kEvaluating && !stays_) AnswerEvaluator(0);
  candidate_.reset();
  if (std::exchange(is_candidate_, false)) {
    DropSnapshots();
    phase_ = Phase::kIdle;
  }
  if (phase_ != Phase::kTaking) LetRoundsGoOn();
}

void Checkpoints::Begin() {
  if (suspended_) return;
  is_candidate_ = candidate_.has_value();
  if (!is_candidate_) asked_ = false;
  best_asked_ = !is_candidate_ && asked_best_;
  best_ = is_candidate_ ? std::nullopt : std::exchange(asked_best_, std::nullopt);
  phase_ = Phase::kTaking;
  ++history_.last_save;
  taken_ = kept_here_ = given_up_ = is_late_ = false;
  ForOthers([](Member& ps) { ps.kept = false; });
  held_since_ = Clock::now();
  deadline_ = held_since_ + Seconds(config_.checkpoint.timeout_s);
  round_ = parts_.rounds.Hold();
  ChooseBase();
  TakeWhenAllPause();
}

// A run that is to stop has little time: what is on its way then is missed by some ps, as with the other
// splits.
void Checkpoints::TakeWhenAllPause() {
  if (phase_ != Phase::kTaking || taken_) return;
  const bool hurries = stays_ && !finished_ && SecondsSince(held_since_) > config_.failure.grace_s / 4;
  const bool hold = parts_.leases.Hold(stays_);
  if (!hurries && !(hold && AllHaveTheSame())) return;
  taken_ = true;
  own_.Take(number(), round_, base_number(), is_candidate_);
}

// A step that waits for a lost ps is whole when the worker asks for another one. In sync a round is.
bool Checkpoints::AllHaveTheSame() {
  return !(stand_in_ || whole_) || config_.train.mode == TrainMode::kSync || parts_.steps.AllWait();
}

// A full one begins a chain of at most checkpoint.delta others, each of which needs that one alone. The ps
// know what has changed since the latest full one that they have taken, whatever became of it: so it is no
// base any more when the next one begins, and after any failure.
void Checkpoints::ChooseBase() {
  if (std::exchange(full_next_, false)) base_.reset();
  is_delta_ = base_ && base_->deltas < config_.checkpoint.delta;
  if (!is_delta_) base_.reset();
}

// The snapshot of ps 0 has the rounds up to round_, or outside sync all updates until now; so the global step
// of this moment is the checkpoint's.
void Checkpoints::OnOwnSnapshot(uint64_t number_here, const ShardSaver::Outcome* part) {
  if (number_here != number()) return;
  if (phase_ == Phase::kWriting && part != nullptr) return writer_.OnPart(0, "", *part);
  if (phase_ != Phase::kTaking || kept_here_) return;
  kept_here_ = true;
  step_ = global_step();
  positions_ =
      parts_.positions.Now(history_.patience, history_.disturbed, history_.data_of, parts_.leases.Taken());
  OrderOthers(Clock::now());
  GoOnWhenAllAreKept();
}

void Checkpoints::OrderOthers(TimePoint now) {
  next_order_ = now + kOrderAgain;
  ForOthers([&](const Member& ps) {
    const bool write = phase_ == Phase::kWriting;
    const bool wanted = write ? writer_.Wants(static_cast<size_t>(ps.task.index)) : !ps.kept;
    const Member* const carrier = CarrierOf(ps);
    if (!wanted || carrier == nullptr || !carrier->here()) return;
    const FaultScope fault("save.order");
    outbox_.Answer(carrier->node, 0, [&](auto& builder) {
      const auto step = static_cast<uint64_t>(step_);
      // It may see the directory of a ps 0 that does not come back, and this one has another.
      const bool there = write && carrier->sees_directory;
      return wire::CreateOrder(builder, 0,
                               wire::CreateSnapshotOrder(builder, number(), round_, false, step, there,
                                                         base_number(), is_candidate_, HeldEpoch(ps)));
    });
  });
}

// What ps 0 keeps of the lost ps; null: nothing.
SnapshotKeeper* Checkpoints::HeldHere() const {
  return stand_in_ && stand_in_->holder == nullptr ? parts_.leader.holder->Keeper(stand_in_->epoch) : nullptr;
}

void Checkpoints::OrderStandIn() {
  ReplicaHolder* const here = parts_.leader.holder;
  if (const Member* const holder = stand_in_->holder) {
    outbox_.Answer(holder->node, 0, [this](auto& builder) {
      return wire::CreateOrder(builder, 0, 0, false, 0, 0, stand_in_->epoch);
    });
  } else {
    here->StandIn(stand_in_->epoch);
  }
  parts_.rounds.TellStandIn(stand_in_->holder, here);
  if (!kept_here_ || stand_in_->holder != nullptr) return;
  if (SnapshotKeeper* const keeper = HeldHere()) return keeper->Take(number(), round_);
  const ShardSaver::Outcome none{{}, "its replica is not whole on ps 0"};
  OnSnapshot(*stand_in_->lost, number(), &none);
}

// Whose part a message is about; null: of none that the sender has.
Member* Checkpoints::PartOf(Member& sender, bool replica) const {
  Member* const of = !replica ? &sender : stand_in_ ? stand_in_->lost : nullptr;
  return of != nullptr && CarrierOf(*of) == &sender ? of : nullptr;
}

void Checkpoints::OnSnapshot(Member& ps, uint64_t number_there, const ShardSaver::Outcome* part) {
  if (phase_ == Phase::kIdle || number_there != number()) return;
  if (phase_ == Phase::kTaking) {
    if (IsHeld(ps) && part != nullptr && !part->error.empty()) return End({"", part->error});
    ps.kept = true;
    return GoOnWhenAllAreKept();
  }
  if (phase_ != Phase::kWriting || part == nullptr) return;
  writer_.OnPart(static_cast<size_t>(ps.task.index), members_.NameOf(ps), *part);
}

void Checkpoints::OnSnapshotState(Member& sender, const wire::SnapshotState& state) {
  Member* const ps = PartOf(sender, state.replica());
  if (ps == nullptr) return;
  ShardSaver::Outcome part;
  if (state.error() != nullptr) {
    part.error = state.error()->size() == 0 ? "it gives no reason" : ShortText(state.error()->str());
  }
  if (state.checksums() != nullptr)
    part.part.checksums.assign(state.checksums()->begin(), state.checksums()->end());
  if (state.sizes() != nullptr) part.part.sizes.assign(state.sizes()->begin(), state.sizes()->end());
  if (state.firsts() != nullptr) part.part.firsts.assign(state.firsts()->begin(), state.firsts()->end());
  OnSnapshot(*ps, state.number(), state.written() || state.error() != nullptr ? &part : nullptr);
}

void Checkpoints::OnPiece(Member& sender, net::Message message) {
  const Member* const ps = PartOf(sender, net::Decode(message)->body_as_Piece()->replica());
  if (phase_ != Phase::kWriting || ps == nullptr) return;
  writer_.OnPiece(static_cast<size_t>(ps->task.index), std::move(message));
}

void Checkpoints::GoOnWhenAllAreKept() {
  bool all = kept_here_;
  ForOthers([&](const Member& ps) { all = all && ps.kept; });
  if (!all) return;
  held_ms_ = SecondsSince(held_since_) * 1000;
  if (is_candidate_) {
    phase_ = Phase::kEvaluating;
    AnswerEvaluator(number());
  } else {
    Write();
  }
  LetRoundsGoOn();
}

void Checkpoints::Write() {
  std::vector<bool> pulled(config_.cluster.ps.size());
  ForOthers([&](const Member& ps) {
    const Member* const carrier = CarrierOf(ps);
    pulled[static_cast<size_t>(ps.task.index)] = carrier != nullptr && !carrier->sees_directory;
  });
  phase_ = Phase::kWriting;
  writing_since_ = next_order_ = Clock::now();
  writer_.Begin(number(), MomentOfSnapshot(), std::move(pulled), std::exchange(lacks_room_, false),
                HeldHere(), stand_in_ ? static_cast<size_t>(stand_in_->lost->task.index) : 0);
}

SavedMoment Checkpoints::MomentOfSnapshot() const {
  const RunId run = history_.run;
  SavedMoment moment{run.id, run.epoch, step_, positions_};
  if (best_) {
    moment.best = true;
    moment.loss = best_->loss.value_or(moment.loss);
    moment.accuracy = best_->accuracy.value_or(moment.accuracy);
    const EvalMetric metric = config_.eval.metric;
    if (metric != EvalMetric::kLoss) moment.best_by = {MetricName(metric), FigureOf(*best_, metric)};
  }
  moment.inputs = history_.inputs;
  moment.origin = history_.origin;
  if (is_delta_) moment.base = base_->stored;
  return moment;
}

// After the last checkpoint rounds go on without contributors: a worker that comes back still needs weights.
// A candidate that waits for its turn is of the round at which the evaluation fell due.
void Checkpoints::LetRoundsGoOn() {
  const bool wait = candidate_ && !is_candidate_;
  if (finished_) parts_.rounds.EndHere();
  if (!finished_ && (stays_ || wait || holds_best_)) return;
  parts_.rounds.GoOn();
  if (!parts_.leases.held()) return;
  parts_.leases.GoOn();
  parts_.steps.ServeWaiting();
}

void Checkpoints::WatchWriter(TimePoint now) {
  if (const std::optional<CheckpointWriter::Outcome> outcome = writer_.Poll()) {
    return End(*outcome);
  }
  if (writer_.writing() && now >= next_order_) OrderOthers(now);
}

void Checkpoints::LetBestGo() {
  if (std::exchange(holds_best_, false) && phase_ != Phase::kTaking) LetRoundsGoOn();
}

double Checkpoints::BestScore() const {
  const bool is_written = phase_ != Phase::kIdle && !is_candidate_ && !asked_best_;
  const std::optional<EvaluationFigures>& best = is_written ? best_ : asked_best_;
  const double figure =
      best ? FigureOf(*best, config_.eval.metric) : std::numeric_limits<double>::quiet_NaN();
  return !std::isnan(figure) ? ScoreOf(config_.eval.metric, figure)
                             : directory_->ReadBestScore(config_.eval.metric);
}

// A disk that hangs may hold the writing thread for ever. One that is being published has as long again.
void Checkpoints::GiveUp(TimePoint now) {
  const double max_s = config_.checkpoint.timeout_s;
  const std::string error = fmt::format("it is not complete after {} s (checkpoint.timeout_s)", max_s);
  if (is_candidate_) {
    NoteFailure(error);
    EndCandidate();
    return BeginNext(error);
  }
  if (phase_ == Phase::kTaking) LetRoundsGoOn();
  if (phase_ == Phase::kTaking) return End({"", error});
  deadline_ = now + Seconds(max_s);
  if (!writer_.GiveUp(error) && !std::exchange(is_late_, true)) return;
  NoteFailure(error);
  given_up_ = true;
  if (candidate_) EndCandidate();
  LetBestGo();
  parts_.ended(error);  // tells the requester now; the next checkpoint begins when this one has ended
}

void Checkpoints::Suspend(const std::string& lost) {
  suspended_ = full_next_ = true;
  const std::string error = lost + " before it was complete";
  if (is_candidate_) {
    NoteFailure(error);
    return EndCandidate();
  }
  if (phase_ == Phase::kTaking) {
    if (!kept_here_) step_ = global_step();
    LetRoundsGoOn();
    again_ = true;
    End({"", error});
  } else if (phase_ == Phase::kWriting && writer_.NeedsParts()) {
    again_ = writer_.GiveUp(error);
  }
}

void Checkpoints::Resume() {
  suspended_ = false;
  if (phase_ == Phase::kIdle && (candidate_ || asked_)) BeginNext("");
}

// A save under way is taken once more. One that was published just before the loss is the newest. The ps know
// another base than this one.
void Checkpoints::TakeOver() {
  full_next_ = true;
  const std::vector<ListedCheckpoint> found = directory_->List();
  if (!found.empty() && found[0].step > history_.checkpoint_step && found[0].step <= global_step()) {
    history_.checkpoint = directory_->PathOf(found[0].name);
    history_.checkpoint_step = saved_step_ = found[0].step;
    restored_ = saved_again_ = false;
    const EvalMetric metric = config_.eval.metric;
    if (asked_best_ && ScoreOf(metric, FigureOf(*asked_best_, metric)) == directory_->ReadBestScore(metric))
      asked_best_.reset();
  } else {
    asked_ |= saves_;
  }
  asked_ |= asked_best_.has_value();
  holds_best_ &= asked_best_.has_value();
  DropSnapshots();
  LetRoundsGoOn();
  if (asked_ || saves_) BeginNext("");
}

void Checkpoints::StandIn(Member& lost, Member* holder, uint64_t epoch) {
  suspended_ = false;
  stand_in_ = Stand{&lost, holder, epoch};
  Ask(true);
}

void Checkpoints::DropSnapshots() {
  own_.Drop(number());
  if (SnapshotKeeper* const keeper = HeldHere()) keeper->Drop(number());
  ForOthers([&](const Member& ps) {
    const Member* const carrier = CarrierOf(ps);
    if (carrier == nullptr || !carrier->here()) return;
    outbox_.Answer(carrier->node, 0, [&](auto& builder) {
      return wire::CreateOrder(
          builder, 0,
          wire::CreateSnapshotOrder(builder, number(), 0, true, 0, false, 0, false, HeldEpoch(ps)));
    });
  });
}

// The first and the last checkpoint, and that of a stop, are not told here: the run ends and tells why.
void Checkpoints::NoteFailure(const std::string& error) {
  if (HasReplica(config_))
    directory_->CheckClaim();  // another ps 0, which leads on, may have removed the save
  const TimePoint now = Clock::now();
  const bool same = failures_ && CauseOf(failures_->error) == CauseOf(error);
  if (!failures_) failures_ = Failures{0, "", now};
  ++failures_->count;
  failures_->error = error;
  if (!running_ || (same && now - failures_->told < kTellAgain)) return;
  failures_->told = now;
  log_.Event(kEventCheckpointFailed, LogLevel::kWarning, Trouble());
}

std::string Checkpoints::Trouble() const {
  if (!failures_) return "";
  const std::string which = failures_->count == 1 ? fmt::format("the checkpoint of global step {}", step_)
                                                  : fmt::format("the last {} checkpoints", failures_->count);
  return fmt::format("{} could not be written: {}", which, failures_->error);
}

void Checkpoints::NoteBase(const CheckpointWriter::Outcome& outcome) {
  if (outcome.path.empty()) return base_.reset();
  if (is_delta_) ++base_->deltas;
  if (!is_delta_ && config_.checkpoint.delta > 0) base_ = Base{number(), outcome.sealed};
}

// The last checkpoint is worth more than older ones, and it may need no base or directory that is gone.
bool Checkpoints::TriesAgain(const std::string& error) {
  if (!(finished_ || stays_) || given_up_) return false;
  const auto names = [&](int problem) { return error.find(ErrnoText(problem)) != std::string::npos; };
  lacks_room_ = names(ENOSPC) || names(EDQUOT);
  const bool gone = IsGone(directory_->path()) && !std::exchange(tried_anew_, true);
  return lacks_room_ || is_delta_ || gone;
}

void Checkpoints::End(const CheckpointWriter::Outcome& outcome) {
  const std::string &path = outcome.path, &error = outcome.error;
  phase_ = Phase::kIdle;
  DropSnapshots();
  next_due_ = Clock::now() + Seconds(config_.checkpoint.every_secs);
  if (path.empty()) {
    if (!given_up_) NoteFailure(error);
    if (!is_there()) {
      history_.checkpoint.clear();
      saved_step_ = -1;
    }
  } else {
    saved_again_ = saved_step_ == step_;
    saved_step_ = step_;
    restored_ = false;
    history_.checkpoint = path;
    history_.checkpoint_step = step_;
    const std::string of =
        is_delta_ ? "; it has what changed since " + CheckpointName(base_->stored.step) : std::string();
    const std::string after =
        failures_ ? fmt::format("; {} before it failed", failures_->count) : std::string();
    failures_.reset();
    log_.Event(kEventCheckpointSaved, LogLevel::kInfo,
               fmt::format("saved {} in {:.2f} s; steps were held for {:.1f} ms{}{}", path,
                           SecondsSince(writing_since_), held_ms_, of, after));
  }
  if (std::exchange(again_, false) && path.empty()) {
    asked_ = true;
    if (best_asked_ || holds_best_) asked_best_ = best_;
    NoteBase(outcome);
    return Begin();
  }
  const bool again = path.empty() && TriesAgain(error);
  NoteBase(outcome);
  if (again) return Begin();
  const bool is_next = asked_best_.has_value();
  BeginNext(path.empty() ? error : "");
  if (!is_next) LetBestGo();
}

// `error`: of the one that has ended.
void Checkpoints::BeginNext(const std::string& error) {
  const bool same = HasAllOf(global_step());  // another one would be
  if (candidate_ || (asked_ && (!same || asked_best_))) return Begin();
  asked_ = false;
  parts_.ended(error);
}

// A run that waits must not push out all older checkpoints with equal ones. A second checkpoint of a step is
// taken all the same: it has the gradients that were still on their way to other ps at the first.
bool Checkpoints::NothingNew() const {
  const int64_t step = global_step();
  return HasAllOf(step) || (saved_step_ == step && saved_again_);
}

void Checkpoints::Tick(TimePoint now) {
  TakeWhenAllPause();
  if (phase_ == Phase::kTaking && now >= next_order_) {
    next_order_ = now + kOrderAgain;
    if (kept_here_) OrderOthers(now);
    if (stand_in_ && !stand_in_->lost->kept) OrderStandIn();
  }
  if (writing()) WatchWriter(now);
  if (phase_ != Phase::kIdle && phase_ != Phase::kEvaluating && now > deadline_) GiveUp(now);
  const double every_secs = config_.checkpoint.every_secs;
  if (phase_ != Phase::kIdle || !running_ || every_secs <= 0 || now < next_due_) return;
  next_due_ = now + Seconds(every_secs);
  if (!NothingNew()) Ask(false);
}

}  // namespace dtrain
