// What the loss of a task means for a run: failure.worker_lost and failure.ps_lost, decided from the state of
// the run and the task's part in it. A pure function, so that its cases are a table in the test.
#pragma once

#include "trainer/config/config.h"
#include "trainer/ps/run_phase.h"

namespace dtrain {

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

}  // namespace dtrain
