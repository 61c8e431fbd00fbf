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

LossCase AtItsSteps(bool chief) {
  LossCase lost;
  lost.chief = chief;
  lost.takes_part = true;
  lost.successor = true;
  return lost;
}

TEST_CASE("loss policy: a worker that is needed, as failure.worker_lost says") {
  const struct {
    WorkerLost worker_lost;
    bool chief;
    Loss loss;
  } cases[] = {
      {WorkerLost::kFail, false, Loss::kEnds},       {WorkerLost::kFail, true, Loss::kEnds},
      {WorkerLost::kWait, false, Loss::kWaits},      {WorkerLost::kWait, true, Loss::kWaits},
      {WorkerLost::kContinue, false, Loss::kGoesOn}, {WorkerLost::kContinue, true, Loss::kGoesOn},
  };
  for (const auto& each : cases) {
    CAPTURE(static_cast<int>(each.worker_lost));
    CAPTURE(each.chief);
    CHECK(DecideLoss(Cluster(each.worker_lost), AtItsSteps(each.chief)) == each.loss);
  }
}

TEST_CASE("loss policy: a run that has not begun, or has ended, loses nothing") {
  for (const RunPhase phase : {RunPhase::kJoining, RunPhase::kEnded}) {
    for (const Role role : {Role::kPs, Role::kWorker}) {
      LossCase lost = AtItsSteps(role == Role::kWorker);
      lost.role = role;
      lost.phase = phase;
      CHECK(DecideLoss(Cluster(WorkerLost::kFail), lost) == Loss::kGoesOn);
    }
  }
}

TEST_CASE("loss policy: a worker that is done, or never took part, is not needed; the chief always is") {
  const Config config = Cluster(WorkerLost::kFail);
  LossCase lost = AtItsSteps(false);
  lost.done = true;
  CHECK(DecideLoss(config, lost) == Loss::kGoesOn);
  lost = LossCase();
  CHECK(DecideLoss(config, lost) == Loss::kGoesOn);
  lost.chief = lost.done = true;
  CHECK(DecideLoss(config, lost) == Loss::kEnds);
}

TEST_CASE("loss policy: one that is waited for is waited for again when it is lost once more") {
  LossCase lost;
  lost.awaited = true;
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), lost) == Loss::kWaits);
}

TEST_CASE("loss policy: without another worker the chief's loss ends a run that goes on without workers") {
  LossCase lost = AtItsSteps(true);
  lost.successor = false;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kEnds);
}

TEST_CASE("loss policy: while the ps fill their ranges a worker is lost as during the steps") {
  LossCase lost = AtItsSteps(true);
  lost.phase = RunPhase::kInitialising;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kGoesOn);
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), lost) == Loss::kWaits);
  lost.successor = false;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kEnds);
}

TEST_CASE("loss policy: a chief that feeds the others ends the run, whatever else is allowed") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    Config config = Cluster(worker_lost);
    config.data.split = Split::kFeed;
    CHECK(DecideLoss(config, AtItsSteps(true)) == Loss::kEnds);
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
