#include "trainer/leader/steps.h"

#include <doctest/doctest.h>

#include <optional>

#include "base/testing/copied_state.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

TEST_CASE("step grants: exactly the total is granted, and given-back steps are granted again") {
  StepGrants grants(10);
  CHECK(grants.Take(7) == 7);
  CHECK(grants.Take(7) == 3);
  CHECK(grants.Take(1) == 0);
  for (int i = 0; i < 6; ++i) grants.Applied();
  grants.GiveBack(4);
  CHECK_FALSE(grants.over());
  CHECK(grants.Take(9) == 4);
  for (int i = 0; i < 4; ++i) grants.Applied();
  CHECK(grants.over());
  CHECK(grants.applied() == 10);
}

TEST_CASE("step grants: without a total there is always a next step") {
  StepGrants grants(std::nullopt);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(grants.Take(3) == 3);
    for (int j = 0; j < 3; ++j) grants.Applied();
  }
  CHECK_FALSE(grants.over());
}

TEST_CASE("step grants: ended early none is granted, and what is open may be applied or given back") {
  StepGrants grants(std::nullopt);
  CHECK(grants.Take(5) == 5);
  grants.Applied();
  grants.EndEarly(0);
  CHECK(grants.Take(1) == 0);
  grants.Applied();
  grants.GiveBack(2);
  CHECK(grants.Take(1) == 0);
  grants.EndEarly(0);
  CHECK_FALSE(grants.over());
  grants.Applied();
  CHECK(grants.over());
  CHECK(grants.applied() == 3);
}

TEST_CASE("step grants: ended early with more to come (rounds that are decided) those are still taken") {
  StepGrants grants(100);
  grants.EndEarly(2);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(grants.over());
    CHECK(grants.Take(1) == 1);
    grants.Applied();
  }
  CHECK(grants.over());
}

TEST_CASE("step grants: begun at a checkpoint, the total counts the steps before it") {
  StepGrants grants(10, 7);
  CHECK(grants.applied() == 7);
  CHECK(grants.Take(5) == 3);
  for (int i = 0; i < 3; ++i) grants.Applied();
  CHECK(grants.over());
  CHECK(grants.applied() == 10);
}

TEST_CASE("step grants: a checkpoint that has all of the steps, or more, leaves none") {
  for (const int64_t total : {int64_t{7}, int64_t{3}}) {
    StepGrants grants(total, 7);
    CHECK(grants.over());
    CHECK(grants.Take(1) == 0);
    CHECK(grants.applied() == 7);
  }
}

constexpr uint64_t kRequest = 7, kClock = 9;

// Two workers, both connected.
class Run {
 public:
  explicit Run(const Config& config) : config_(config) {
    for (int worker = 0; worker < 2; ++worker) Worker(worker).node = static_cast<net::NodeId>(2 + 2 * worker);
  }
  Member& Worker(int index) { return *members_.Worker(index); }
  // The last message, which must be a Grant.
  const wire::Grant& Granted() const { return *channel_.sent.back().envelope().body_as_Grant(); }
  size_t sent() const { return channel_.sent.size(); }

 private:
  const Config config_;
  TaskTable members_{config_, {Role::kPs, 0}};
  FakeChannel channel_;
  Outbox outbox_{channel_, 16};
  RunHistory history_;
  const Layout layout_;
  Logger log_{"ps 0", LogOptions{LogLevel::kError, false, "", false}};

 public:
  Leases leases{config_, layout_, members_, history_, outbox_, log_};
  Steps steps{config_, members_, outbox_, leases, [](Member&) { return kClock; }};
};

Config OfSteps(int64_t steps, TrainMode mode = TrainMode::kAsync) {
  Config config = LinearCluster(1, 2, steps);
  config.train.mode = mode;
  return config;
}

TEST_CASE("steps: a worker begins with as many steps as it may have under way") {
  Config config = OfSteps(3);
  config.train.in_flight = 2;
  Run run(config);
  CHECK(run.steps.GrantFirst(run.Worker(0)) == 2);
  CHECK(run.steps.GrantFirst(run.Worker(0)) == 2);  // asked again: the same steps
  CHECK(run.steps.GrantFirst(run.Worker(1)) == 1);
}

TEST_CASE("steps: who asks while others hold the last steps waits until one comes back") {
  Run run(OfSteps(1));
  CHECK(run.steps.GrantFirst(run.Worker(0)) == 1);
  run.steps.OnNeedStep(run.Worker(1), kRequest);
  CHECK(run.sent() == 0);
  run.steps.GiveBack(run.Worker(0));
  run.steps.ServeWaiting();
  REQUIRE(run.sent() == 1);
  CHECK(run.Granted().steps() == 1);
}

TEST_CASE("steps: who waits hears that there is no more step, once the last is applied") {
  Run run(OfSteps(1));
  run.steps.GrantFirst(run.Worker(0));
  run.steps.OnNeedStep(run.Worker(1), kRequest);
  run.steps.Applied(run.Worker(0));
  CHECK(run.steps.over());
  run.steps.ServeWaiting();
  REQUIRE(run.sent() == 1);
  CHECK(run.Granted().over());
  CHECK(run.Granted().global_step() == 1);
}

TEST_CASE("steps: a request that is repeated is granted the same step") {
  Config config = OfSteps(5);
  config.train.in_flight = 3;
  Run run(config);
  run.steps.OnNeedStep(run.Worker(0), kRequest);
  run.steps.OnNeedStep(run.Worker(0), kRequest);
  CHECK(run.sent() == 2);
  CHECK(run.Granted().steps() == 1);
  run.steps.OnNeedStep(run.Worker(0), kRequest + 1);
  run.steps.OnNeedStep(run.Worker(0), kRequest + 2);
  run.steps.GiveBack(run.Worker(0));
  CHECK(run.steps.GrantFirst(run.Worker(1)) == 3);
}

TEST_CASE("steps: those of a lost ps 0 go on in the next one") {
  Run run(OfSteps(3)), next(OfSteps(3));
  for (int worker = 0; worker < 2; ++worker) CHECK(run.steps.GrantFirst(run.Worker(worker)) == 1);
  run.steps.Applied(run.Worker(0));
  CopyState(run.steps, &next.steps);
  for (int worker = 0; worker < 2; ++worker) CopyState(run.Worker(worker), &next.Worker(worker));
  for (Run* each : {&run, &next}) {
    CHECK(each->steps.applied() == 1);
    CHECK(each->steps.GrantNext(each->Worker(0)) == 1);
    CHECK(each->steps.GrantNext(each->Worker(0)) == 0);
    each->steps.GiveBack(each->Worker(1));
    CHECK(each->steps.GrantFirst(each->Worker(1)) == 1);
    for (int worker = 0; worker < 2; ++worker) each->steps.Applied(each->Worker(worker));
    CHECK(each->steps.over());
  }
  CHECK(next.steps.first_applied_nanos() == run.steps.first_applied_nanos());
}

TEST_CASE("steps: closed, it grants no next step outside sync") {
  Run run(OfSteps(5));
  run.steps.GrantFirst(run.Worker(0));
  run.steps.Close();
  CHECK(run.steps.GrantNext(run.Worker(0)) == 0);
}

TEST_CASE("steps: all wait when each worker that takes part has asked for a step, or is done") {
  Run run(OfSteps(9));
  for (int worker = 0; worker < 2; ++worker) {
    run.Worker(worker).takes_part = true;
    CHECK(run.steps.GrantFirst(run.Worker(worker)) == 1);
  }
  run.steps.Close();
  run.steps.OnNeedStep(run.Worker(0), kRequest);
  CHECK_FALSE(run.steps.AllWait());
  run.Worker(1).done = true;
  CHECK(run.steps.AllWait());
  run.Worker(1).done = false;
  run.steps.OnNeedStep(run.Worker(1), kRequest);
  CHECK(run.steps.AllWait());
}

TEST_CASE("steps: in sync every worker is granted its next step until the rounds are over") {
  Run run(OfSteps(1, TrainMode::kSync));
  CHECK(run.steps.GrantNext(run.Worker(0)) == 1);
  CHECK(run.steps.GrantNext(run.Worker(1)) == 1);
  run.steps.OnNeedStep(run.Worker(1), kRequest);  // which takes none from the run
  CHECK(run.Granted().steps() == 1);
  CHECK_FALSE(run.steps.over());
  run.steps.RoundApplied();
  CHECK(run.steps.applied() == 1);
  CHECK(run.steps.GrantNext(run.Worker(0)) == 0);
}

TEST_CASE("steps: a run that is ended early applies what is granted, and no more") {
  Run run(OfSteps(5));
  run.steps.GrantFirst(run.Worker(0));
  run.steps.EndEarly(std::nullopt);
  CHECK_FALSE(run.steps.over());
  CHECK(run.steps.GrantNext(run.Worker(1)) == 0);
  run.steps.Applied(run.Worker(0));
  CHECK(run.steps.over());
}

TEST_CASE("steps: a worker that asks again and again holds no more than it may have in flight") {
  Config config = OfSteps(100);
  config.train.in_flight = 2;
  Run run(config);
  CHECK(run.steps.GrantFirst(run.Worker(0)) == 2);
  for (uint64_t request = 1; request < 100; ++request) run.steps.OnNeedStep(run.Worker(0), request);
  CHECK(run.Worker(0).open_steps == 2);
  run.steps.Applied(run.Worker(0));
  run.steps.ServeWaiting();
  CHECK(run.Worker(0).open_steps == 2);
}

// A run with data.split: dynamic over an epoch of four batches. Worker 0 has the first two.
struct LeasedRun : Run {
  static Config Of(TrainMode mode) {
    Config config = OfSteps(100, mode);
    config.data.split = Split::kDynamic;
    config.train.epochs = 1;
    return config;
  }
  explicit LeasedRun(TrainMode mode) : Run(Of(mode)) {
    leases.set_on_free([] {});
    leases.BeginAt(DataPlan(), 4);
    for (int worker = 0; worker < 2; ++worker)
      Worker(worker).incarnation = 70 + static_cast<uint64_t>(worker);
    leases.Start(Worker(0));
    CHECK(steps.GrantFirst(Worker(0)) == 1);
  }
  // Worker 1 has the rest, and takes it.
  void TakeRest() {
    leases.Start(Worker(1));
    Take(1, 2);
  }
  void Take(int index, int count) {
    for (int step = 0; step < count; ++step) {
      ++Worker(index).taken;
      leases.Taken(Worker(index), 1);
    }
  }
};

TEST_CASE(
    "steps: with leases a worker gets its batches with a step, and enters with the clock of the grant") {
  LeasedRun run(TrainMode::kSsp);
  run.steps.OnNeedStep(run.Worker(1), kRequest);
  REQUIRE(run.sent() == 1);
  CHECK(run.Granted().steps() == 1);
  CHECK(run.Granted().clock() == kClock);
  CHECK_FALSE(run.Granted().pause());
  REQUIRE(run.Granted().leases() != nullptr);
  CHECK(run.Granted().leases()->Get(0)->first() == 2);
}

TEST_CASE("steps: with leases no next step is granted without a batch for it") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    LeasedRun run(mode);
    run.steps.Applied(run.Worker(0));
    CHECK(run.steps.GrantNext(run.Worker(0)) == 1);
    run.steps.Applied(run.Worker(0));
    run.Take(0, 2);
    CHECK(run.steps.GrantNext(run.Worker(0)) == 0);
  }
}

TEST_CASE("steps: who finds no batch waits; where others would wait for it, it is to pause first") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    LeasedRun run(mode);
    run.TakeRest();
    run.steps.OnNeedStep(run.Worker(1), kRequest);
    if (mode != TrainMode::kAsync) {
      REQUIRE(run.sent() == 1);
      CHECK(run.Granted().pause());
      CHECK_FALSE(run.Granted().over());
      run.steps.ServeWaiting();  // who pauses has its answer
      run.steps.OnNeedStep(run.Worker(1), kRequest + 1, /*paused=*/true);
    }
    const size_t before = run.sent();
    CHECK(before == (mode == TrainMode::kAsync ? 0 : 1));
    run.steps.ServeWaiting();
    CHECK(run.sent() == before);
    run.leases.Release(run.Worker(0));
    run.steps.ServeWaiting();
    REQUIRE(run.sent() == before + 1);
    CHECK_FALSE(run.Granted().pause());
    CHECK(run.Granted().steps() == 1);
  }
}

TEST_CASE("steps: none is granted while they are held, and then to those that wait") {
  LeasedRun run(TrainMode::kAsync);
  run.leases.Hold(false);
  run.steps.Applied(run.Worker(0));
  CHECK(run.steps.GrantNext(run.Worker(0)) == 0);
  run.leases.Start(run.Worker(1));
  CHECK(run.steps.GrantFirst(run.Worker(1)) == 0);
  run.steps.OnNeedStep(run.Worker(0), kRequest);
  run.steps.ServeWaiting();
  CHECK(run.sent() == 0);
  run.leases.Pauses(run.Worker(0));
  CHECK(run.leases.Hold(false));
  run.leases.GoOn();
  run.steps.ServeWaiting();
  REQUIRE(run.sent() == 1);
  CHECK(run.Granted().steps() == 1);
  CHECK_FALSE(run.leases.Hold(false));  // it goes on
}

TEST_CASE("steps: with leases the run is over when every ps has all batches, and those that wait hear it") {
  LeasedRun run(TrainMode::kAsync);
  run.TakeRest();
  run.leases.Pauses(run.Worker(1));
  run.steps.OnNeedStep(run.Worker(1), kRequest);
  run.Take(0, 2);
  run.steps.ServeWaiting();
  CHECK_FALSE(run.steps.over());
  CHECK(run.sent() == 0);
  run.leases.Pauses(run.Worker(0));
  CHECK(run.steps.over());
  run.steps.ServeWaiting();
  REQUIRE(run.sent() == 1);
  CHECK(run.Granted().over());
}

}  // namespace
}  // namespace dtrain
