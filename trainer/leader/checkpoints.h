// Checkpoints: decides when the leader takes a checkpoint, has every ps take its snapshot, and reports how
// the checkpoint ended. One at a time. In mode sync no round is decided until every ps has its snapshot, so
// all have one version; in the other modes each ps takes it when the order arrives, and with data.split:
// dynamic no step is granted meanwhile, and those that were are on every ps. CheckpointWriter writes the
// files. A disk that stays full fails every checkpoint: a failure is told when its cause is another one than
// before, and else every ten minutes. With eval.keep_best an evaluation that is due begins with a snapshot
// too, the candidate: a worker evaluates it, and then it is written as the best checkpoint or dropped. Other
// checkpoints wait meanwhile. Messages: docs/wire.md, Orders to a ps. Owner: LocalLeader. Thread: the ps
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/leader/checkpoint_writer.h"
#include "trainer/leader/evaluations.h"
#include "trainer/leader/leases.h"
#include "trainer/leader/rounds.h"
#include "trainer/leader/run_start.h"
#include "trainer/leader/steps.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/snapshot_keeper.h"

namespace dtrain {

class Checkpoints {
 public:
  // Called when a requested checkpoint has ended. `error`: why there is none; empty: it is complete.
  using Ended = std::function<void(const std::string& error)>;
  struct Parts {
    const LeaderParts& leader;
    Rounds& rounds;
    Steps& steps;
    Leases& leases;
    const RunPositions& positions;
    Ended ended;
  };

  // Prepares and claims checkpoint.dir. Throws UserError when it cannot be written or another run writes
  // there, and PeerLost when a run that goes on finds that another process has taken it.
  explicit Checkpoints(const Parts& parts);

  const CheckpointDirectory& directory() const { return *directory_; }
  // Starts the checkpoints of the config (checkpoint.every_steps, checkpoint.every_secs).
  void Run();
  // Ends the checkpoints of the config.
  void Close() { running_ = false; }
  // All workers are done: takes the last checkpoint, unless the newest one has all of their work. In sync no
  // gradient is accepted after its snapshot.
  void Finish();
  // Takes a checkpoint now, or as soon as the current one has ended. `stays`: the last one; nothing is
  // applied after its snapshot.
  void Ask(bool stays);
  // Ask(false), for a worker's request. Does nothing once the last checkpoint was asked for.
  void AskUnlessLast() {
    if (!stays_) Ask(false);
  }
  // Takes one of the final weights, which are the best: these are their figures.
  void AskBest(const EvaluationFigures& figures);

  // An evaluation of `worker` is due: takes the candidate now, or as soon as the current checkpoint has
  // ended. In sync no round is decided until it is taken.
  void AskForCandidate(const Member& worker);
  // That worker asks for the candidate: answers when it is taken, and not at all once the last checkpoint was
  // asked for. The answer names no snapshot where the candidate could not be taken. False: the disk hangs,
  // and there is no candidate.
  bool OnNeedSnapshot(const Member& worker, uint64_t request);
  // Whether `number` is the candidate that is being evaluated.
  bool IsCandidate(uint64_t number) const {
    return (phase_ == Phase::kEvaluating && number == this->number()) || IsLostCandidate(number);
  }
  // The worker has told the figures of its evaluation. `best`: of the candidate, if it is the best; it is
  // written.
  void OnEvaluated(const Member& worker, const std::optional<EvaluationFigures>& best);
  // The worker will not tell any.
  void ForgetCandidate(const Member& worker) { OnEvaluated(worker, std::nullopt); }
  // Counts an applied update.
  void OnStep() {
    const int64_t every = config_.checkpoint.every_steps;
    if (running_ && every > 0 && global_step() % every == 0) Ask(false);
  }
  // With data.split: dynamic, a worker pauses: takes the snapshots if no other one is on its way to a ps.
  void TakeWhenAllPause();
  // A ps is lost, and fills itself from its replica when it is back: it has no snapshot then. Gives up the
  // current checkpoint, which is taken once more, and a candidate; takes none until Resume(), and then one of
  // all rows. `lost`: "ps 1 (10.0.0.3:9001; node3, pid 17) was lost".
  void Suspend(const std::string& lost);
  void Resume();
  template <typename Archive>
  void State(Archive& archive) {
    const std::optional<EvaluationFigures>& best = SavesAgain() && !asked_best_ ? best_ : asked_best_;
    std::string figures = best && !archive.reads() ? EvaluationToJson(*best) : "";
    if (!archive.reads()) saves_ = phase_ != Phase::kIdle && !is_candidate_;
    if (!archive.reads() && phase_ == Phase::kEvaluating) evaluated_ = {number(), round_};
    archive(running_, asked_, saves_, stays_, finished_, holds_best_, evaluated_, lacks_room_, figures,
            saved_step_, saved_again_, restored_, next_due_);
    if (!archive.reads()) return;
    if (!figures.empty()) asked_best_ = EvaluationFromJson(figures);
  }
  // This ps 0 goes on in the place of a lost one, whose state was read.
  void TakeOver();
  // The ps does not come back: takes the last checkpoint, in which its part is from its replica of this
  // epoch, on `holder` (null: on ps 0). That stands in for the ps until every worker waits for a step, so
  // that all ps have the same ones.
  void StandIn(Member& lost, Member* holder, uint64_t epoch);
  // Takes the last checkpoint when every worker waits for a step, so that all ps have the same ones.
  void AskWhole() {
    whole_ = true;
    Ask(true);
  }
  // Reports of ps 0 and of the other ps about their snapshots and their parts.
  void OnOwnSnapshot(uint64_t number, const ShardSaver::Outcome* part);
  void OnSnapshot(Member& ps, uint64_t number, const ShardSaver::Outcome* part);
  void OnSnapshotState(Member& ps, const wire::SnapshotState& state);
  void OnPiece(Member& ps, net::Message message);
  void Tick(TimePoint now);

  bool idle() const { return phase_ == Phase::kIdle && !asked_; }
  // A checkpoint is being written: call Tick() soon.
  bool writing() const { return phase_ == Phase::kWriting; }
  // Whether nobody has removed or renamed the newest checkpoint, as far as it is known.
  bool is_there() const { return history_.checkpoint.empty() || !IsGone(history_.checkpoint); }
  // A checkpoint is being taken or written, or has to be.
  bool saving() const { return !idle() && phase_ != Phase::kEvaluating; }
  // The score of the best checkpoint (ScoreOf()), also of one that is being written or has to be; infinity:
  // there is none.
  double BestScore() const;
  // The global step of the newest complete checkpoint; -1: none yet.
  int64_t saved_step() const { return saved_step_; }
  // Whether the newest checkpoint has every gradient up to `step`. Outside sync it may lack some when there
  // are several ps: each takes its snapshot on its own, without the gradients still on their way to it.
  bool HasAllOf(int64_t step) const {
    return saved_step_ == step && is_there() &&
           (alone_ || config_.train.mode == TrainMode::kSync || parts_.leases.on() || restored_);
  }
  // Whether ps 0 itself has seen every byte of the newest checkpoint. Of a restored one the other ps have
  // read their parts.
  bool verified() const { return alone_ || !restored_; }
  // What people who ask for the status must know of checkpoints that fail; empty while they succeed.
  std::string Trouble() const;
  // The run starts from a checkpoint of this global step.
  void set_saved(int64_t step) {
    saved_step_ = step;
    restored_ = true;
  }

 private:
  enum class Phase { kIdle, kTaking, kEvaluating, kWriting };
  int64_t global_step() const { return parts_.steps.applied(); }
  uint64_t number() const { return history_.last_save; }
  uint64_t base_number() const { return is_delta_ ? base_->number : 0; }
  void Begin();
  bool NothingNew() const;
  // The weights of the best that is being written are still those of the run.
  // A candidate of before a loss of ps 0. In sync the weights are the same while no round follows.
  bool IsLostCandidate(uint64_t number) const {
    return phase_ != Phase::kEvaluating && number != 0 && number == evaluated_.number &&
           config_.train.mode == TrainMode::kSync && parts_.rounds.last() == evaluated_.round;
  }
  bool SavesAgain() const { return phase_ != Phase::kIdle && !is_candidate_ && (best_asked_ || holds_best_); }
  void AskForPiece(const Member& ps, uint64_t number, Piece piece);
  void OrderOthers(TimePoint now);
  void OrderStandIn();
  bool IsHeld(const Member& ps) const { return stand_in_ && stand_in_->lost == &ps; }
  // Who has the part of this ps; null: ps 0.
  const Member* CarrierOf(const Member& ps) const { return IsHeld(ps) ? stand_in_->holder : &ps; }
  uint64_t HeldEpoch(const Member& ps) const { return IsHeld(ps) ? stand_in_->epoch : 0; }
  SnapshotKeeper* HeldHere() const;
  Member* PartOf(Member& sender, bool replica) const;
  bool AllHaveTheSame();
  void GoOnWhenAllAreKept();
  void Write();
  void ChooseBase();
  void LetRoundsGoOn();
  void LetBestGo();
  SavedMoment MomentOfSnapshot() const;
  void GiveUp(TimePoint now);
  void DropSnapshots();
  void EndCandidate();
  void AnswerEvaluator(uint64_t number);
  void BeginNext(const std::string& error);
  void WatchWriter(TimePoint now);
  void NoteFailure(const std::string& error);
  void NoteBase(const CheckpointWriter::Outcome& outcome);
  bool TriesAgain(const std::string& error);
  void End(const CheckpointWriter::Outcome& outcome);
  template <typename Send>
  void ForOthers(Send&& send) {
    for (Member& member : members_.all()) {
      if (!member.is_worker()) send(member);
    }
  }

  const Parts parts_;
  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  RunHistory& history_;
  SnapshotKeeper& own_;
  Logger& log_;
  const bool alone_;  // there is no other ps
  const std::unique_ptr<CheckpointDirectory> directory_;
  CheckpointWriter writer_;
  Phase phase_ = Phase::kIdle;
  bool running_ = false;
  bool asked_ = false;
  bool saves_ = false;  // the ps 0 that was lost had a save under way
  bool stays_ = false;
  bool finished_ = false;
  bool suspended_ = false;
  bool whole_ = false;  // AskWhole() was called
  struct Stand {
    Member* lost;
    Member* holder;  // null: ps 0
    uint64_t epoch;
  };
  std::optional<Stand> stand_in_;
  bool lacks_room_ = false;                      // the last checkpoint did not fit on the disk
  bool tried_anew_ = false;                      // to make a directory that is gone, for the last checkpoint
  std::optional<EvaluationFigures> asked_best_;  // for the next checkpoint
  // An evaluation that is due and not ended.
  struct Candidate {
    int worker = 0;
    uint64_t request = 0;  // its question for the snapshot; 0: it has not asked
  };
  std::optional<Candidate> candidate_;
  // With checkpoint.delta: the checkpoint of all rows that deltas may follow.
  struct Base {
    uint64_t number = 0;
    StoredBase stored = {};
    int64_t deltas = 0;  // that have followed
  };
  std::optional<Base> base_;
  bool full_next_ = false;  // the next one has no base
  // The current checkpoint.
  bool is_candidate_ = false;  // nobody knows yet whether it is written
  bool is_delta_ = false;      // since base_
  uint64_t round_ = 0;
  int64_t step_ = 0;
  std::string positions_;
  std::optional<EvaluationFigures> best_;
  bool best_asked_ = false;  // by AskBest()
  // In sync with replicas no round is decided while a candidate is written: if a ps is lost meanwhile, the
  // same weights are saved once more.
  bool holds_best_ = false;
  struct Evaluated {
    uint64_t number = 0, round = 0;
    template <typename Archive>
    void State(Archive& archive) {
      archive(number, round);
    }
  };
  Evaluated evaluated_;  // the newest candidate, as the replica knows it
  bool again_ = false;   // it was given up since a ps was lost
  bool taken_ = false;   // ps 0 was told to keep its snapshot
  bool kept_here_ = false;
  bool given_up_ = false;
  bool is_late_ = false;  // it was being published when its time was over
  TimePoint held_since_;
  TimePoint writing_since_;
  TimePoint next_order_;
  TimePoint deadline_;
  double held_ms_ = 0;
  TimePoint next_due_;
  // Of the checkpoints since the newest complete one.
  struct Failures {
    int64_t count = 0;
    std::string error;  // of the latest
    TimePoint told;
  };
  std::optional<Failures> failures_;
  int64_t saved_step_ = -1;
  bool saved_again_ = false;  // two checkpoints of that step were written by this process
  bool restored_ = false;     // the newest checkpoint was restored, not written here
};

}  // namespace dtrain
