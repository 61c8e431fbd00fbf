// Setback: how long a run that lost a task took no step, and how many steps that cost it. What is known of it
// outlives a rollback in the RunHistory. Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

class Setback {
 public:
  Setback(RunHistory& history, Logger& log) : history_(history), log_(log) {}

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
