// SaveDesk: ps 0's part in the checkpoints of a run: when one is taken, that every ps keeps its range as of
// the same moment, who writes it, and how that ended. One at a time. In mode sync no round is decided until
// every ps has its cut, so that all are of one version; else each cuts as soon as it hears of it. JointSave
// writes it.
// Messages: docs/wire.md, Checkpoints. Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/cut_keeper.h"
#include "trainer/ps/evaluations.h"
#include "trainer/ps/joint_save.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

class SaveDesk {
 public:
  struct Parts {
    const Config& config;
    Membership& members;
    Outbox& outbox;
    UpdateRule& rule;
    CutKeeper& keeper;
    RunHistory& history;
    Logger& log;
    JointSave& joint;
    std::function<bool(const Member& ps)> sees_directory;
    std::function<int64_t()> global_step;
    std::function<std::string()> positions;  // of the workers now, as JSON
  };
  // How a checkpoint ended that was asked for: the reason why there is none, or empty.
  using Ended = std::function<void(const std::string& error)>;

  explicit SaveDesk(const Parts& parts);
  void set_ended(Ended ended) { ended_ = std::move(ended); }

  // From now on checkpoints are taken when the config says so.
  void Run();
  // No more of them by the config.
  void Close() { running_ = false; }
  // All workers are done: the last one, where there is none yet of all that they did. In sync no gradient is
  // taken any more once it is cut.
  void Finish();
  // A checkpoint of this moment, or the earliest possible. `stays`: nothing more is to be applied behind it.
  void Ask(bool stays);
  // An update was applied.
  void OnStep() {
    const int64_t every = parts_.config.checkpoint.every_steps;
    if (running_ && every > 0 && parts_.global_step() % every == 0) Ask(false);
  }
  // A worker asks for one.
  void OnSave();
  // One that is the best so far, by these figures.
  void AskBest(const EvaluationFigures& figures);
  // This ps has its cut.
  void OnKept();
  void OnCutState(const Member& ps, const wire::CutState& state);
  void OnPiece(const Member& ps, net::Message message);
  void Tick(TimePoint now);

  bool idle() const { return phase_ == Phase::kIdle && !asked_; }
  // A checkpoint is being written: it is to be looked after soon.
  bool writing() const { return phase_ == Phase::kWriting; }
  // The global step of the newest complete checkpoint; -1: none yet.
  int64_t saved_step() const { return saved_step_; }
  // Whether that is all of this global step. With several ps each cuts for itself, save in sync, and what was
  // under way to another ps is not in it.
  bool HasAllOf(int64_t step) const {
    return saved_step_ == step &&
           (kept_.size() == 1 || parts_.config.train.mode == TrainMode::kSync || restored_);
  }
  // The run begins with a checkpoint of this step.
  void set_saved(int64_t step) {
    saved_step_ = step;
    restored_ = true;
  }

 private:
  enum class Phase { kIdle, kCutting, kWriting };
  void Begin();
  bool NothingNew() const;
  void AskForCuts(TimePoint now);
  void GoOnWhenAllAreKept();
  void LetRoundsGoOn();
  SavedMoment MomentOfCut() const;
  void GiveUp(TimePoint now);
  void DropCuts();
  void WatchJointSave(TimePoint now);
  void End(const std::string& path, const std::string& error);

  const Parts parts_;
  Ended ended_;
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
  std::vector<bool> kept_;  // by ps
  TimePoint held_since_;
  TimePoint writing_since_;
  TimePoint next_question_;
  TimePoint deadline_;
  double held_ms_ = 0;
  TimePoint next_due_;
  int64_t saved_step_ = -1;
  bool saved_again_ = false;  // more than once, from within this run
  bool restored_ = false;     // it was not written here
};

}  // namespace dtrain
