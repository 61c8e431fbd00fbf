// What the loss of a task means for a run: failure.worker_lost and failure.ps_lost, decided from the state of
// the run and the task's part in it (a pure function, so that its cases are a table in the test), and what
// the loss has cost. Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

// How far a run is.
enum class RunPhase { kJoining, kInitialising, kRunning, kEnded };

enum class Loss { kEnds, kGoesOn, kWaits, kRollsBack };

struct LossCase {
  Role role = Role::kWorker;
  RunPhase phase = RunPhase::kRunning;
  bool feeds = false;  // data.split: feed, and it is the worker that has the data
  bool takes_part = false;
  bool awaited = false;  // it is lost already, and the run waits for it
  bool done = false;     // with its steps
  bool others = false;   // another worker takes part and is here
};

Loss DecideLoss(const Config& config, const LossCase& lost);

// RecoveryStats: for how long a run that lost a task took no step, and how many steps that cost it. It is
// kept in the RunHistory, so that a rollback does not end it.
class RecoveryStats {
 public:
  RecoveryStats(RunHistory& history, Logger& log) : history_(history), log_(log) {}

  // The run goes back to a checkpoint from this step.
  void Begin(int64_t global_step);
  // By a task that was in this run before ps 0 was: the run goes on, and what it knows of the loss is
  // all there is.
  void Learn(const wire::Ready& returning);
  // No step was applied since.
  bool open() const { return history_.lost_since != TimePoint(); }
  // The run goes on from this step: says what the loss has cost.
  void End(int64_t global_step);

 private:
  RunHistory& history_;
  Logger& log_;
};

}  // namespace dtrain
