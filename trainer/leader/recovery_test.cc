#include "trainer/leader/recovery.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "base/testing/files.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

TEST_CASE("loss: a worker is needed as its case says") {
  constexpr WorkerLost kContinue = WorkerLost::kContinue, kWait = WorkerLost::kWait,
                       kFail = WorkerLost::kFail;
  const auto lost = [](const std::function<void(LossCase&)>& change) {
    LossCase of;
    of.takes_part = of.others = true;
    change(of);
    return of;
  };
  const LossCase at_its_steps = lost([](LossCase&) {});
  const LossCase last = lost([](LossCase& of) { of.others = false; });
  const LossCase filling = lost([](LossCase& of) { of.phase = RunPhase::kInitialising; });
  const LossCase last_filling =
      lost([](LossCase& of) { of.phase = RunPhase::kInitialising, of.others = false; });
  const LossCase done = lost([](LossCase& of) { of.done = true; });
  const LossCase feeds = lost([](LossCase& of) { of.feeds = of.done = true; });
  const LossCase awaited = lost([](LossCase& of) { of.takes_part = of.others = false, of.awaited = true; });
  const struct {
    const char* what;
    WorkerLost worker_lost;
    LossCase lost;
    Loss loss;
  } cases[] = {
      {"at its steps", kFail, at_its_steps, Loss::kEnds},
      {"at its steps", kWait, at_its_steps, Loss::kWaits},
      {"at its steps", kContinue, at_its_steps, Loss::kGoesOn},
      {"before the run", kFail, lost([](LossCase& of) { of.phase = RunPhase::kJoining; }), Loss::kGoesOn},
      {"after the run", kFail, lost([](LossCase& of) { of.phase = RunPhase::kEnded; }), Loss::kGoesOn},
      {"it is done", kFail, done, Loss::kGoesOn},
      {"it never took part", kFail, LossCase(), Loss::kGoesOn},
      {"it is waited for already", kWait, awaited, Loss::kWaits},
      {"it is the last one", kContinue, last, Loss::kEnds},
      {"the ps fill their ranges", kContinue, filling, Loss::kGoesOn},
      {"the ps fill their ranges", kWait, filling, Loss::kWaits},
      {"the ps fill their ranges, the last one", kContinue, last_filling, Loss::kEnds},
      {"it feeds the others", kContinue, feeds, Loss::kEnds},
      {"it feeds the others", kWait, feeds, Loss::kEnds},
  };
  for (const auto& each : cases) {
    CAPTURE(each.what);
    Config config = LinearCluster(1, 3, 10);
    config.failure.worker_lost = each.worker_lost;
    CHECK(DecideLoss(config, each.lost) == each.loss);
  }
}

TEST_CASE("loss: a ps rolls the run back only where it runs, there are checkpoints and ps_lost allows it") {
  const struct {
    RunPhase phase;
    std::string dir;
    PsLost ps_lost;
    Loss loss;
  } cases[] = {
      {RunPhase::kRunning, "", PsLost::kWait, Loss::kEnds},
      {RunPhase::kRunning, "ckpt", PsLost::kWait, Loss::kRollsBack},
      {RunPhase::kRunning, "ckpt", PsLost::kFail, Loss::kEnds},
      {RunPhase::kJoining, "", PsLost::kFail, Loss::kGoesOn},
      {RunPhase::kEnded, "", PsLost::kFail, Loss::kGoesOn},
  };
  for (const auto& each : cases) {
    Config config = LinearCluster(1, 3, 10);
    config.checkpoint.dir = each.dir;
    config.failure.ps_lost = each.ps_lost;
    LossCase lost;
    lost.role = Role::kPs;
    lost.phase = each.phase;
    CHECK(DecideLoss(config, lost) == each.loss);
  }
}

struct Lost {
  void Learn(uint64_t global_step, uint64_t quiet_ms) {
    const net::Message ready =
        encoder.Finish({}, wire::CreateReady(encoder.Begin(), true, global_step, quiet_ms));
    recovery.Learn("worker 0", *net::Decode(ready)->body_as_Ready());
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

TEST_CASE("recovery: that nothing is lost with a ps that has a replica is told with the next step, once") {
  Lost run;
  run.recovery.Returned("ps 1", Clock::now() - milliseconds(2000));
  CHECK(run.recovery.open());
  run.recovery.End(7);
  CHECK(run.Logged("stepping again 2.00 s after the loss of ps 1, from its replica: nothing is lost"));
  CHECK_FALSE(run.recovery.open());
  CHECK_FALSE(run.Logged("from global step 7"));
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
