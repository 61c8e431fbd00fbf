#include "trainer/ps/loss_policy.h"

#include <doctest/doctest.h>

#include <string>

#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

Config Cluster(WorkerLost worker_lost) {
  Config config = LinearCluster(1, 3, 10);
  config.failure.worker_lost = worker_lost;
  return config;
}

LossCase AtItsSteps() {
  LossCase lost;
  lost.takes_part = true;
  lost.others = true;
  return lost;
}

TEST_CASE("loss policy: a worker that is needed, as failure.worker_lost says") {
  CHECK(DecideLoss(Cluster(WorkerLost::kFail), AtItsSteps()) == Loss::kEnds);
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), AtItsSteps()) == Loss::kWaits);
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), AtItsSteps()) == Loss::kGoesOn);
}

TEST_CASE("loss policy: a run that has not begun, or has ended, loses nothing") {
  for (const RunPhase phase : {RunPhase::kJoining, RunPhase::kEnded}) {
    for (const Role role : {Role::kPs, Role::kWorker}) {
      LossCase lost = AtItsSteps();
      lost.role = role;
      lost.phase = phase;
      CHECK(DecideLoss(Cluster(WorkerLost::kFail), lost) == Loss::kGoesOn);
    }
  }
}

TEST_CASE("loss policy: a worker that is done, or never took part, is not needed") {
  const Config config = Cluster(WorkerLost::kFail);
  LossCase lost = AtItsSteps();
  lost.done = true;
  CHECK(DecideLoss(config, lost) == Loss::kGoesOn);
  lost = LossCase();
  CHECK(DecideLoss(config, lost) == Loss::kGoesOn);
}

TEST_CASE("loss policy: one that is waited for is waited for again when it is lost once more") {
  LossCase lost;
  lost.awaited = true;
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), lost) == Loss::kWaits);
}

TEST_CASE("loss policy: the loss of the last worker ends a run that goes on without workers") {
  LossCase lost = AtItsSteps();
  lost.others = false;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kEnds);
}

TEST_CASE("loss policy: while the ps fill their ranges a worker is lost as during the steps") {
  LossCase lost = AtItsSteps();
  lost.phase = RunPhase::kInitialising;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kGoesOn);
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), lost) == Loss::kWaits);
  lost.others = false;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kEnds);
}

TEST_CASE("loss policy: a worker that feeds the others ends the run, whatever else is allowed") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    LossCase lost = AtItsSteps();
    lost.feeds = lost.done = true;
    CHECK(DecideLoss(Cluster(worker_lost), lost) == Loss::kEnds);
  }
}

TEST_CASE("loss policy: a ps rolls the run back only where there are checkpoints and ps_lost allows it") {
  const struct {
    std::string dir;
    PsLost ps_lost;
    Loss loss;
  } cases[] = {
      {"", PsLost::kWait, Loss::kEnds},
      {"ckpt", PsLost::kWait, Loss::kRollsBack},
      {"ckpt", PsLost::kFail, Loss::kEnds},
  };
  for (const auto& each : cases) {
    Config config = Cluster(WorkerLost::kContinue);
    config.checkpoint.dir = each.dir;
    config.failure.ps_lost = each.ps_lost;
    LossCase lost;
    lost.role = Role::kPs;
    CHECK(DecideLoss(config, lost) == each.loss);
  }
}

}  // namespace
}  // namespace dtrain
