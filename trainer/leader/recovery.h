// What the loss of a task means for a run (failure.worker_lost, failure.ps_lost) and what the loss has cost.
// The decision is a pure function of the state of the run and of the task.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

enum class RunPhase { kJoining, kInitialising, kRunning, kEnded };

enum class Loss { kEnds, kGoesOn, kWaits, kRollsBack };

struct LossCase {
  Role role = Role::kWorker;
  RunPhase phase = RunPhase::kRunning;
  bool feeds = false;  // data.split: feed, and this worker has the data
  bool takes_part = false;
  bool awaited = false;  // lost already, and the run waits for it
  bool done = false;     // it has taken all its steps
  bool others = false;   // another worker takes part and is connected
};

Loss DecideLoss(const Config& config, const LossCase& lost);

// RecoveryStats: how long a run that lost a task applied no step, and how many steps the loss cost. The
// numbers are kept in RunHistory and survive a rollback.
class RecoveryStats {
 public:
  RecoveryStats(RunHistory& history, Logger& log) : history_(history), log_(log) {}

  // The run goes back from this global step to a checkpoint.
  void Begin(int64_t global_step);
  // A task returns that was in the run before this process of ps 0; only such tasks know of the loss, and of
  // checkpoints that this host may not have.
  void Learn(const std::string& task, const wire::Ready& returning);
  // A ps that was lost at `since` is back with all that it had, from its replica.
  void Returned(const std::string& ps, TimePoint since) { returned_ = {ps, since}; }
  // The run has applied no step since the loss, or the return.
  bool open() const { return history_.lost_since != TimePoint() || !returned_.ps.empty(); }
  // The run goes on at this global step: logs what the loss has cost.
  void End(int64_t global_step);

 private:
  RunHistory& history_;
  Logger& log_;
  struct {
    std::string ps;  // empty: none
    TimePoint since;
  } returned_;
};

}  // namespace dtrain
