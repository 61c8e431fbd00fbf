// One ps and two workers driven by hand: when each mode applies and when it answers.
#include <doctest/doctest.h>

#include <vector>

#include "net/codec.h"
#include "trainer/task/two_worker_run_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("sync: the workers begin together, and a round is the mean of their gradients, applied once") {
  TwoWorkerRun run(TwoWorkers(TrainMode::kSync));
  run.Enter(0);
  run.CheckNothing(0);
  run.Enter(1);
  run.CheckWeights(0, 0, {0, 0});
  run.CheckWeights(1, 0, {0, 0});
  run.workers[1].SendPush(5, {1, 2}, 0, 0);
  run.workers[1].SendPush(5, {1, 2}, 0, 0);  // repeated: neither applied nor answered yet
  run.CheckNothing(1);
  run.workers[0].SendPush(5, {3, 4}, 0, 0);
  run.CheckWeights(0, 1, {-2, -3});
  run.CheckWeights(1, 1, {-2, -3});
  run.workers[1].SendPush(5, {1, 2}, 0, 0);  // its answer was lost
  run.CheckWeights(1, 1, {-2, -3});
}

TEST_CASE("sync: a gradient that is too late for its round is dropped and answered with the next") {
  Config config = TwoWorkers(TrainMode::kSync);
  config.train.aggregate = 1;
  TwoWorkerRun run(config);
  run.EnterBoth();
  run.workers[0].SendPush(5, {1, 1}, 0, 0);
  run.CheckWeights(0, 1, {-1, -1});
  run.workers[1].SendPush(5, {50, 50}, 0, 0);
  run.CheckNothing(1);
  run.workers[0].SendPush(6, {1, 1}, 0, 1);
  run.CheckWeights(0, 2, {-2, -2});
  run.CheckWeights(1, 2, {-2, -2});
  run.workers[1].SendPush(6, {1, 1}, 0, 2);
  run.CheckWeights(1, 3, {-3, -3});
}

TEST_CASE("sync: a round goes on without a worker that is done") {
  TwoWorkerRun run(TwoWorkers(TrainMode::kSync));
  run.EnterBoth();
  run.workers[0].SendPush(5, {1, 1}, 0, 0);
  run.CheckNothing(0);
  run.workers[1].Send(5, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  run.CheckWeights(0, 1, {-1, -1});
}

TEST_CASE("sync: a second gradient before the first is answered is refused, and the first still counts") {
  TwoWorkerRun run(TwoWorkers(TrainMode::kSync));
  run.EnterBoth();
  run.workers[0].SendPush(5, {1, 1}, 0, 0);
  run.workers[0].SendPush(6, {9, 9}, 0, 0);
  const wire::Refuse* refuse = run.workers[0].Expect<wire::Refuse>();
  REQUIRE(refuse != nullptr);
  CHECK(refuse->reason() == wire::Reason::BadRequest);
  run.workers[1].SendPush(5, {3, 3}, 0, 0);
  run.CheckWeights(0, 1, {-2, -2});
}

TEST_CASE("sync: a pull of a worker whose gradient waits is dropped") {
  TwoWorkerRun run(TwoWorkers(TrainMode::kSync));
  run.EnterBoth();
  run.workers[0].SendPush(5, {1, 1}, 0, 0);
  run.workers[0].Send(6, [](auto& builder) { return wire::CreatePull(builder, 0, true); });
  run.CheckNothing(0);
  run.workers[1].SendPush(5, {3, 3}, 0, 0);
  run.CheckWeights(0, 1, {-2, -2});
}

TEST_CASE("sync: asking for a step takes none from the run") {
  Config config = TwoWorkers(TrainMode::kSync);
  config.train.steps = 1;
  TwoWorkerRun run(config);
  run.EnterBoth();
  run.workers[1].Send(5, [](auto& builder) { return wire::CreateNeedStep(builder); });
  CHECK(run.workers[1].Expect<wire::Grant>()->steps() == 1);
  run.workers[0].SendPush(5, {1, 1}, 0, 0);
  run.workers[1].SendPush(6, {1, 1}, 0, 0);
  run.CheckWeights(0, 1, {-1, -1});
  run.CheckWeights(1, 1, {-1, -1});
  run.workers[1].Send(7, [](auto& builder) { return wire::CreateDone(builder, 1, 0.5, 1, 2, 0, 0, 0); });
  CHECK(run.workers[1].Expect<wire::Ack>() != nullptr);
}

TEST_CASE("ssp: an answer waits while its worker is further ahead of the slowest than the bound") {
  Config config = TwoWorkers(TrainMode::kSsp);
  config.train.staleness = 1;
  TwoWorkerRun run(config);
  run.EnterBoth();
  run.workers[0].SendPush(5, {1, 1});
  run.CheckWeights(0, 1, {-1, -1});
  run.workers[0].SendPush(6, {1, 1});  // two ahead
  run.workers[0].SendPush(6, {1, 1});  // repeated: applied once
  run.CheckNothing(0);
  run.workers[1].SendPush(5, {1, 1});
  run.CheckWeights(1, 3, {-3, -3});
  run.CheckWeights(0, 3, {-3, -3});
}

TEST_CASE("ssp: a worker counts from the start, also before its first pull") {
  Config config = TwoWorkers(TrainMode::kSsp);
  config.train.staleness = 0;
  TwoWorkerRun run(config);
  run.Enter(0);
  run.CheckWeights(0, 0, {0, 0});
  run.workers[0].SendPush(5, {1, 1});
  run.CheckNothing(0);
  run.Enter(1);
  run.CheckWeights(1, 1, {-1, -1});
  run.workers[1].SendPush(5, {1, 1});
  run.CheckWeights(0, 2, {-2, -2});
}

TEST_CASE("ssp: a worker that is done holds nobody up") {
  Config config = TwoWorkers(TrainMode::kSsp);
  config.train.staleness = 0;
  TwoWorkerRun run(config);
  run.EnterBoth();
  run.workers[0].SendPush(5, {1, 1});
  run.CheckNothing(0);
  run.workers[1].Send(5, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  run.CheckWeights(0, 1, {-1, -1});
}

TEST_CASE("async: an answer waits for nobody") {
  TwoWorkerRun run(TwoWorkers(TrainMode::kAsync));
  run.EnterBoth();
  for (uint64_t step = 1; step <= 5; ++step) {
    run.workers[0].SendPush(4 + step, {1, 1});
    const auto value = -static_cast<float>(step);
    run.CheckWeights(0, step, {value, value});
  }
}

}  // namespace
}  // namespace dtrain
