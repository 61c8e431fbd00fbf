// Checkpoints: the leader's part in the checkpoints of a run: when one is taken, that every ps has its
// snapshot as of the same moment, and how it ended. One at a time. In mode sync no round is decided until
// every ps has its snapshot, so that all are of one version; else each takes it as soon as it hears of it.
// CheckpointWriter writes it. Messages: docs/wire.md, Checkpoints. Owner: LocalLeader. Thread: the ps loop.
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
#include "trainer/leader/rounds.h"
#include "trainer/leader/run_start.h"
#include "trainer/leader/steps.h"
#include "trainer/ps/ps_server.h"

namespace dtrain {

class Checkpoints {
 public:
  // How a checkpoint ended that was asked for: the reason why there is none, or empty.
  using Ended = std::function<void(const std::string& error)>;
  struct Parts {
    const LeaderParts& leader;
    Rounds& rounds;
    const Steps& steps;
    const RunPositions& positions;
    Ended ended;
  };

  // Prepares and claims checkpoint.dir. Throws UserError where nothing can be written there, or another run
  // does; PeerLost where the run goes on and another process has taken the directory.
  explicit Checkpoints(const Parts& parts);

  const CheckpointDirectory& directory() const { return *directory_; }
  // From now on checkpoints are taken when the config says so.
  void Run();
  // No more of them by the config.
  void Close() { running_ = false; }
  // All workers are done: the last one, where there is none yet of all that they did. In sync no gradient is
  // taken any more once its snapshot is.
  void Finish();
  // A checkpoint of this moment, or the earliest possible. `stays`: nothing more is to be applied behind it.
  void Ask(bool stays);
  // For a worker, or a better evaluation: not behind the last one, after which nothing is applied that it
  // does not have.
  void AskUnlessLast() {
    if (!stays_) Ask(false);
  }
  void AskBest(const EvaluationFigures& figures);
  // An update was applied.
  void OnStep() {
    const int64_t every = config_.checkpoint.every_steps;
    if (running_ && every > 0 && global_step() % every == 0) Ask(false);
  }
  // What ps 0, or another ps, tells of its snapshot and of its part.
  void OnOwnSnapshot(uint64_t number, const ShardSaver::Outcome* part);
  void OnSnapshotState(Member& ps, const wire::SnapshotState& state);
  // A piece of another ps's range.
  void OnPiece(const Member& ps, net::Message message);
  void Tick(TimePoint now);

  bool idle() const { return phase_ == Phase::kIdle && !asked_; }
  // A checkpoint is being written: Tick() is wanted soon.
  bool writing() const { return phase_ == Phase::kWriting; }
  // The global step of the newest complete checkpoint; -1: none yet.
  int64_t saved_step() const { return saved_step_; }
  // Whether that is all of this global step. With several ps each takes its snapshot by itself, save in sync,
  // and what was on its way to another ps is not in it.
  bool HasAllOf(int64_t step) const {
    return saved_step_ == step && (alone_ || config_.train.mode == TrainMode::kSync || restored_);
  }
  // The run begins with a checkpoint of this step.
  void set_saved(int64_t step) {
    saved_step_ = step;
    restored_ = true;
  }

 private:
  enum class Phase { kIdle, kTaking, kWriting };
  int64_t global_step() const { return parts_.steps.applied(); }
  uint64_t number() const { return history_.last_save; }
  void Begin();
  bool NothingNew() const;
  void OrderOthers(TimePoint now);
  void GoOnWhenAllAreKept();
  void LetRoundsGoOn();
  SavedMoment MomentOfSnapshot() const;
  void GiveUp(TimePoint now);
  void DropSnapshots();
  void WatchWriter(TimePoint now);
  void End(const std::string& path, const std::string& error);
  // `send(ps)` for every other ps.
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
  bool stays_ = false;
  bool finished_ = false;
  std::optional<EvaluationFigures> asked_best_;  // the next one is the best so far
  // Of the checkpoint in hand.
  uint64_t round_ = 0;
  int64_t step_ = 0;
  std::string positions_;
  std::optional<EvaluationFigures> best_;
  bool kept_here_ = false;
  TimePoint held_since_;
  TimePoint writing_since_;
  TimePoint next_order_;
  TimePoint deadline_;
  double held_ms_ = 0;
  TimePoint next_due_;
  int64_t saved_step_ = -1;
  bool saved_again_ = false;  // more than once, from within this run
  bool restored_ = false;     // it was not written here
};

}  // namespace dtrain
