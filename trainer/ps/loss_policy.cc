#include "trainer/ps/loss_policy.h"

namespace dtrain {
Loss DecideLoss(const Config& config, const LossCase& lost) {
  const bool begun = lost.phase == RunPhase::kInitialising || lost.phase == RunPhase::kRunning;
  if (!begun) return Loss::kGoesOn;
  if (lost.role == Role::kPs) return RecoversPs(config) ? Loss::kRollsBack : Loss::kEnds;
  // Nobody else has data then, and those that it fed have given up by the time it is back.
  if (lost.feeds) return Loss::kEnds;
  if (lost.done || (!lost.takes_part && !lost.awaited)) return Loss::kGoesOn;
  switch (config.failure.worker_lost) {
    case WorkerLost::kContinue:
      return lost.others ? Loss::kGoesOn : Loss::kEnds;
    case WorkerLost::kWait:
      return Loss::kWaits;
    case WorkerLost::kFail:
      break;
  }
  return Loss::kEnds;
}

}  // namespace dtrain
