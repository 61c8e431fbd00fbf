#include "trainer/leader/recovery.h"

#include <doctest/doctest.h>

#include <string>

#include "base/testing/files.h"
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

TEST_CASE("loss: a worker that is needed, as failure.worker_lost says") {
  CHECK(DecideLoss(Cluster(WorkerLost::kFail), AtItsSteps()) == Loss::kEnds);
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), AtItsSteps()) == Loss::kWaits);
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), AtItsSteps()) == Loss::kGoesOn);
}

TEST_CASE("loss: a run that has not begun, or has ended, loses nothing") {
  for (const RunPhase phase : {RunPhase::kJoining, RunPhase::kEnded}) {
    for (const Role role : {Role::kPs, Role::kWorker}) {
      LossCase lost = AtItsSteps();
      lost.role = role;
      lost.phase = phase;
      CHECK(DecideLoss(Cluster(WorkerLost::kFail), lost) == Loss::kGoesOn);
    }
  }
}

TEST_CASE("loss: a worker that is done, or never took part, is not needed") {
  const Config config = Cluster(WorkerLost::kFail);
  LossCase lost = AtItsSteps();
  lost.done = true;
  CHECK(DecideLoss(config, lost) == Loss::kGoesOn);
  lost = LossCase();
  CHECK(DecideLoss(config, lost) == Loss::kGoesOn);
}

TEST_CASE("loss: one that is waited for is waited for again when it is lost once more") {
  LossCase lost;
  lost.awaited = true;
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), lost) == Loss::kWaits);
}

TEST_CASE("loss: the loss of the last worker ends a run that goes on without workers") {
  LossCase lost = AtItsSteps();
  lost.others = false;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kEnds);
}

TEST_CASE("loss: while the ps fill their ranges a worker is lost as during the steps") {
  LossCase lost = AtItsSteps();
  lost.phase = RunPhase::kInitialising;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kGoesOn);
  CHECK(DecideLoss(Cluster(WorkerLost::kWait), lost) == Loss::kWaits);
  lost.others = false;
  CHECK(DecideLoss(Cluster(WorkerLost::kContinue), lost) == Loss::kEnds);
}

TEST_CASE("loss: a worker that feeds the others ends the run, whatever else is allowed") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    LossCase lost = AtItsSteps();
    lost.feeds = lost.done = true;
    CHECK(DecideLoss(Cluster(worker_lost), lost) == Loss::kEnds);
  }
}

TEST_CASE("loss: a ps rolls the run back only where there are checkpoints and ps_lost allows it") {
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

struct Lost {
  void Learn(uint64_t global_step, uint64_t quiet_ms) {
    const net::Message ready =
        encoder.Finish({}, wire::CreateReady(encoder.Begin(), true, global_step, quiet_ms));
    recovery.Learn(*net::Decode(ready)->body_as_Ready());
  }
  bool Logged(const std::string& text) const {
    return testing::FileContent(log.path()).find(text) != std::string::npos;
  }

  net::Encoder encoder;
  RunHistory history;
  Logger log{"ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  RecoveryStats recovery{history, log};
};

TEST_CASE("recovery: what a loss has cost is told when the run steps again, and counted once") {
  Lost run;
  CHECK_FALSE(run.recovery.open());
  run.recovery.Begin(9);
  CHECK(run.recovery.open());
  run.recovery.Begin(8);  // lost again before the run went on
  run.recovery.End(7);
  CHECK(run.Logged("from global step 7: 2 steps of 9 lost"));
  CHECK_FALSE(run.recovery.open());
}

TEST_CASE(
    "recovery: of those who were in the run before ps 0 was, who saw the last of it knows of the loss") {
  Lost run;
  run.Learn(8, 5000);
  run.Learn(9, 2000);
  run.Learn(7, ~uint64_t{0});
  CHECK(run.history.begun);
  CHECK(run.history.lost_step == 9);
  const TimePoint since = run.history.lost_since;
  CHECK(since < Clock::now() - milliseconds(100000));
  run.Learn(7, 1000);
  CHECK(run.history.lost_since == since);
}

}  // namespace
}  // namespace dtrain
