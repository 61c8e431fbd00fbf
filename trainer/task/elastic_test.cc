// Workers driven by hand that are lost, come back or come late: how each mode handles that.
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/data/positions.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/elastic_run_test_util.h"

namespace dtrain {
namespace {

// Saves a checkpoint of step 0 with the workers at `positions`; returns its path.
std::string SavedAt(const Config& config, const Positions& positions) {
  CheckpointDirectory directory(testing::NewDirectory());
  testing::SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 1, PlacementConfig());
  of.slots = SlotNames(config);
  of.step = 0;
  of.positions = ToJson(positions);
  return SaveSmall(&directory, of);
}

TEST_CASE(
    "elastic, async: steps that a lost worker did not use are granted again, and the run ends without it") {
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue, 3);
  config.cluster.min_workers = 2;
  config.train.steps = 3;
  Positions earlier = StartOfData(config, std::nullopt);
  earlier.local_steps = {0, 0, 4};  // no sign that worker 2 took part in this run
  earlier.examples = {0, 0, 4};
  config.checkpoint.resume = SavedAt(config, earlier);
  ElasticRun run(config, 2);
  run.At(1)->SendPush(5, {1, 1});
  CHECK(run.At(1)->Expect<wire::Weights>()->steps() == 1);
  run.At(0)->SendPush(5, {1, 1});
  CHECK(run.At(0)->Expect<wire::Weights>()->steps() == 0);  // the last step is worker 1's
  run.At(0)->Send(6, [](auto& builder) { return wire::CreateNeedStep(builder); });
  run.At(0).CheckNothing();
  run.At(1).Lose();
  CHECK(run.At(0)->Expect<wire::Grant>()->steps() == 1);
  run.At(0)->SendPush(7, {1, 1});
  CHECK(run.At(0)->Expect<wire::Weights>()->global_step() == 3);

  // A worker that comes now has nothing to do.
  CHECK(run.Again(1).Start().over());

  run.At(0)->Send(8, [](auto& builder) { return wire::CreateDone(builder, 2, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(run.At(0)->Expect<wire::Ack>() != nullptr);
  run.At(0)->Send(9, [](auto& builder) { return wire::CreateWaitEnd(builder); });
  REQUIRE(run.At(0)->Expect<wire::End>() != nullptr);
  run.At(1)->Send(2, [](auto& builder) { return wire::CreateWaitEnd(builder); });
  const wire::End* end = run.At(1)->Expect<wire::End>();
  REQUIRE(end != nullptr);
  RunSummary summary;
  REQUIRE(FromWireJson(end->json()->str(), &summary));
  CHECK(summary.global_step == 3);
  CHECK(summary.local_steps == std::vector<int64_t>{2, 1, 4});
  CHECK(summary.lost_workers == std::vector<int64_t>{1});
  CHECK(summary.absent_workers == std::vector<int64_t>{2});
}

TEST_CASE("elastic: a newcomer while the others' results are collected has nothing to do") {
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  ElasticRun run(config, 1);
  run.At(0)->Send(5, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(run.At(0)->Expect<wire::Ack>() != nullptr);
  run.At(0)->Send(6, [](auto& builder) { return wire::CreateWaitEnd(builder); });
  REQUIRE(run.At(0)->Expect<wire::End>() != nullptr);
  CHECK(run.Again(1).Start().over());
}

TEST_CASE("elastic, async, continue: where tasks are started again the end waits for one with steps left") {
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue);
  config.failure.restarts = 1;
  ElasticRun run(config);
  run.At(1).Lose();
  run.At(0)->Send(5, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(run.At(0)->Expect<wire::Ack>() != nullptr);
  run.At(0)->Send(6, [](auto& builder) { return wire::CreateWaitEnd(builder); });
  run.At(0).CheckNothing();
  Task& again = run.Again(1);
  CHECK_FALSE(again.Start().over());
  run.At(0).CheckNothing();
  again->Send(2, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(again->Expect<wire::Ack>() != nullptr);
  CHECK(run.At(0)->Expect<wire::End>() != nullptr);
}

TEST_CASE("elastic, async, wait: the others go on, and the end waits") {
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kWait);
  ElasticRun run(config);
  run.At(1).Lose();
  run.At(0)->SendPush(5, {1, 1});
  run.At(0).CheckWeights(0, 1, {-1, -1});
  run.At(0)->Send(6, [](auto& builder) { return wire::CreateDone(builder, 1, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(run.At(0)->Expect<wire::Ack>() != nullptr);
  run.At(0)->Send(7, [](auto& builder) { return wire::CreateWaitEnd(builder); });
  run.At(0).CheckNothing();
  Task& again = run.Again(1);
  CHECK_FALSE(again.Start().over());
  again->Send(2, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(again->Expect<wire::Ack>() != nullptr);
  CHECK(run.At(0)->Expect<wire::End>() != nullptr);
}

TEST_CASE("elastic, sync, continue: a round goes on without a worker that is lost") {
  ElasticRun run(Elastic(TrainMode::kSync, WorkerLost::kContinue));
  run.At(0)->SendPush(5, {1, 1}, 0, 0);
  run.At(0).CheckNothing();
  run.At(1).Lose();
  run.At(0).CheckWeights(0, 1, {-1, -1});
  // The worker comes back and joins at the end of a round.
  Task& again = run.Again(1);
  const wire::Start& start = again.Start();
  CHECK_FALSE(start.resume());
  CHECK(start.workers()->size() == 0);
  again.Enter(2, {});
  again.CheckNothing();
  run.At(0)->SendPush(6, {1, 1}, 0, 1);
  run.At(0).CheckWeights(0, 2, {-2, -2});
  again.CheckWeights(0, 2, {-2, -2});
  run.At(0)->SendPush(7, {1, 1}, 0, 2);
  run.At(0).CheckNothing();
  again->SendPush(3, {3, 3}, 0, 2);
  again.CheckWeights(0, 3, {-4, -4});
}

TEST_CASE("elastic, sync, wait: a round waits for the worker, which takes it up where it was") {
  ElasticRun run(Elastic(TrainMode::kSync, WorkerLost::kWait));
  run.At(0)->SendPush(5, {1, 1}, 0, 0);
  run.At(1).Lose();
  run.At(0).CheckNothing();
  Task& again = run.Again(1);
  const wire::Start& start = again.Start();
  CHECK(start.resume());
  CHECK(start.version() == 0);
  CHECK(start.local_step() == 0);
  again.Resume(0, 2, 0);
  again.CheckWeights(0, 0, {0, 0});
  again->SendPush(3, {3, 3}, 0, 0);
  again.CheckWeights(0, 1, {-2, -2});
  run.At(0).CheckWeights(0, 1, {-2, -2});
}

TEST_CASE("elastic, sync, wait: a gradient that comes again counts once, at every ps") {
  ElasticRun run(Elastic(TrainMode::kSync, WorkerLost::kWait, 2, 2));
  for (const size_t ps : {0, 1}) run.At(0).To(ps).SendPush(5, {2}, 0, 0);
  run.At(1).To(0).SendPush(5, {4}, 0, 0);  // the block for ps 1 is never sent
  for (const int worker : {0, 1}) run.At(worker).CheckWeights(0, 1, {-3});
  run.At(1).Lose();
  run.At(0).CheckNothing(1);
  Task& again = run.Again(1);
  run.At(0).CheckNothing(1);
  const wire::Start& start = again.Start();
  CHECK(start.resume());
  CHECK(start.version() == 0);
  CHECK(start.local_step() == 0);
  CHECK(start.steps() == 1);
  for (const size_t ps : {0, 1}) {
    for (int copy = 0; copy < 2; ++copy) {  // the answer was lost
      again.Resume(ps, 2, 0);
      again.CheckWeights(ps, 0, {0});
    }
    again.To(ps).SendPush(3, {4}, 0, 0);
    again.CheckWeights(ps, 1, {-3});
  }
  run.At(0).CheckWeights(1, 1, {-3});
  for (const size_t ps : {0, 1}) {
    run.At(0).To(ps).SendPush(6, {1}, 0, 1);
    again.To(ps).SendPush(4, {1}, 0, 1);
    run.At(0).CheckWeights(ps, 2, {-4});
    again.CheckWeights(ps, 2, {-4});
  }
}

TEST_CASE("ssp: each ps keeps an answer back for itself, whatever the gradients that others have") {
  Config config = Elastic(TrainMode::kSsp, WorkerLost::kContinue, 2, 3);
  config.train.staleness = 1;
  ElasticRun run(config);
  std::vector<std::vector<float>> gradient;  // two values on two ps
  for (const Range& range : MakeLayout(config, 3).ps) gradient.emplace_back(range.size(), 1.0f);
  for (const size_t ps : {0, 1, 2}) {
    run.At(0).To(ps).SendPush(5, gradient[ps]);
    REQUIRE(run.At(0).To(ps).Expect<wire::Weights>()->version() == 1);
    run.At(0).To(ps).SendPush(6, gradient[ps]);
  }
  run.At(1).To(1).SendPush(5, gradient[1]);  // the connection to ps 1 is the faster one
  REQUIRE(run.At(0).To(1).Expect<wire::Weights>()->version() == 3);
  for (const size_t ps : {0, 2}) run.At(0).CheckNothing(ps);
  for (const size_t ps : {0, 2}) {
    run.At(1).To(ps).SendPush(5, gradient[ps]);
    REQUIRE(run.At(0).To(ps).Expect<wire::Weights>()->version() == 3);
  }
}

TEST_CASE("elastic, ssp, continue: the bound does not count a lost worker") {
  ElasticRun run(Elastic(TrainMode::kSsp, WorkerLost::kContinue));
  run.At(0)->SendPush(5, {1, 1});
  run.At(0).CheckNothing();
  run.At(1).Lose();
  run.At(0).CheckWeights(0, 1, {-1, -1});
}

TEST_CASE("elastic, ssp, wait: the bound counts a lost worker, which goes on at its own count") {
  ElasticRun run(Elastic(TrainMode::kSsp, WorkerLost::kWait));
  run.At(0)->SendPush(5, {1, 1});
  run.At(1).Lose();
  run.At(0).CheckNothing();
  Task& again = run.Again(1);
  CHECK(again.Start().clock() == 0);
  run.At(0).CheckNothing();
  again->SendPush(2, {1, 1});
  run.At(0).CheckWeights(0, 2, {-2, -2});
}

TEST_CASE("elastic, ssp: a newcomer counts from the slowest's count on, as soon as it is told so") {
  Config config = Elastic(TrainMode::kSsp, WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  ElasticRun run(config, 1);
  for (uint64_t step = 1; step <= 3; ++step) {
    run.At(0)->SendPush(4 + step, {1, 1});
    REQUIRE(run.At(0)->Expect<wire::Weights>()->version() == step);
  }
  Task& late = run.Again(1);
  const wire::Start& start = late.Start();
  CHECK(start.clock() == 3);
  CHECK(start.local_step() == 0);
  run.At(0)->SendPush(8, {1, 1});
  run.At(0).CheckNothing();
  late->SendPush(2, {1, 1});
  run.At(0).CheckWeights(0, 5, {-5, -5});
}

TEST_CASE("elastic, fail: a lost worker ends the run, by name") {
  ElasticRun run(Elastic(TrainMode::kAsync, WorkerLost::kFail));
  run.At(1).Lose();
  CHECK_THROWS_WITH_AS(run.ps[0]->Wait(), doctest::Contains("worker 1 (127.0.0.1:11002)"), PeerLost);
}

TEST_CASE("elastic: a chief that is lost ends the run, by name, where no other worker takes part") {
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  ElasticRun run(config, 1);
  run.At(0).Lose();
  CHECK_THROWS_WITH_AS(run.ps[0]->Wait(), doctest::Contains("worker 0 (127.0.0.1:11001)"), PeerLost);
}

TEST_CASE("elastic, wait: a worker that is not back in failure.wait_s ends the run, by name") {
  Config config = Elastic(TrainMode::kSync, WorkerLost::kWait);
  config.failure.wait_s = 0.2;
  ElasticRun run(config);
  run.At(1).Lose();
  CHECK_THROWS_WITH_AS(run.ps[0]->Wait(),
                       doctest::Contains("worker 1 (127.0.0.1:11002; test, pid 1) was lost"), PeerLost);
}

TEST_CASE("elastic: the start misses only as many workers as it needs, and says of whom") {
  net::InprocTransport transport;
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue, 4);
  config.cluster.min_workers = 2;
  config.failure.startup_timeout_s = 0.2;
  Ps ps(config, transport);
  RawWorker chief(config, transport, 0);
  chief.Join();
  CHECK_THROWS_WITH_AS(
      ps.Wait(),
      doctest::Contains("missing: 1 of worker 1 (127.0.0.1:11002), worker 2 (127.0.0.1:11003), worker 3"),
      PeerLost);
}

}  // namespace
}  // namespace dtrain
