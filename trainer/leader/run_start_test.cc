#include "trainer/leader/run_start.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/peer/form_message.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

using Indices = std::vector<uint32_t>;

constexpr uint64_t kRequest = 7;

// ps 0, ps 1 and workers; the test says which become ready.
class Barrier {
 public:
  explicit Barrier(int workers, const Config& config) : config_(config) {
    Ready({Role::kPs, 1});
    for (int worker = 0; worker < workers; ++worker) Ready({Role::kWorker, worker});
  }
  void Ready(TaskId task) {
    Join(task);
    members_.At(task).ready = true;
  }
  void Join(TaskId task) {
    members_.At(task).node =
        static_cast<net::NodeId>(2 + 2 * task.index + (task.role == Role::kPs ? 100 : 0));
  }
  std::optional<StartBarrier::Enough> LookAfter(double seconds) { return barrier_.Look(After(seconds)); }
  void CheckAfter(double seconds) { barrier_.Check(After(seconds)); }
  std::string Status() const { return barrier_.Status(); }

  RunHistory history;

 private:
  TimePoint After(double seconds) const {
    return begun_ + milliseconds(static_cast<int64_t>(seconds * 1000));
  }

  const Config config_;
  const TimePoint begun_ = Clock::now();
  TaskTable members_{config_, {Role::kPs, 0}};
  Logger log_{"ps 0", {}};
  StartBarrier barrier_{config_, members_, history, log_, begun_};
};

Config FailingBy(WorkerLost worker_lost) {
  Config config = LinearCluster(2, 3, 10);
  config.failure.worker_lost = worker_lost;
  return config;
}

TEST_CASE("start barrier: a run begins when all are ready") {
  Barrier barrier(2, FailingBy(WorkerLost::kContinue));
  CHECK_FALSE(barrier.LookAfter(0).has_value());
  barrier.Ready({Role::kWorker, 2});
  const std::optional<StartBarrier::Enough> enough = barrier.LookAfter(0);
  REQUIRE(enough.has_value());
  CHECK(enough->all);
}

TEST_CASE("start barrier: min_workers of them are enough, whichever they are") {
  Config config = FailingBy(WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  Barrier barrier(0, config);
  CHECK_FALSE(barrier.LookAfter(1000).has_value());
  barrier.Ready({Role::kWorker, 1});
  const std::optional<StartBarrier::Enough> enough = barrier.LookAfter(1001);
  REQUIRE(enough.has_value());
  CHECK_FALSE(enough->all);
}

TEST_CASE("start barrier: no run begins without worker 0 where that feeds the others") {
  Config config = FailingBy(WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  config.data.split = Split::kFeed;
  Barrier barrier(0, config);
  barrier.Ready({Role::kWorker, 1});
  CHECK_FALSE(barrier.LookAfter(1000).has_value());
  barrier.Ready({Role::kWorker, 0});
  CHECK(barrier.LookAfter(1001).has_value());
}

TEST_CASE("start barrier: no run begins without all of its ps") {
  Barrier barrier(3, LinearCluster(3, 3, 10));
  CHECK_FALSE(barrier.LookAfter(0).has_value());
  barrier.Ready({Role::kPs, 2});
  CHECK(barrier.LookAfter(0).has_value());
}

TEST_CASE("start barrier: a run that goes on takes those that took part, after twice detect_s any one") {
  Barrier barrier(1, FailingBy(WorkerLost::kContinue));
  barrier.history.begun = true;
  barrier.history.here = {true, true, false};
  CHECK_FALSE(barrier.LookAfter(0).has_value());
  CHECK_FALSE(barrier.LookAfter(4).has_value());  // detect_s is 2
  CHECK(barrier.LookAfter(4.1).has_value());
}

TEST_CASE("start barrier: with worker_lost: wait a run goes on with no fewer than took part") {
  Config config = FailingBy(WorkerLost::kWait);
  config.cluster.min_workers = 1;
  Barrier barrier(2, config);
  barrier.history.begun = true;
  barrier.history.here = {true, true, true};
  CHECK_FALSE(barrier.LookAfter(0).has_value());
  CHECK_FALSE(barrier.LookAfter(1000).has_value());
  CHECK_NOTHROW(barrier.CheckAfter(config.failure.wait_s));
  CHECK_THROWS_WITH_AS(barrier.CheckAfter(config.failure.wait_s + 0.1),
                       doctest::Contains("missing: worker 2 ("), PeerLost);
  barrier.Ready({Role::kWorker, 2});
  CHECK(barrier.LookAfter(1000).has_value());
}

TEST_CASE("start barrier: its status names who is missing and who still prepares") {
  Barrier barrier(1, FailingBy(WorkerLost::kFail));
  barrier.Join({Role::kWorker, 1});
  CHECK(barrier.Status() == "joined 4 of 5; missing: worker 2 (127.0.0.1:11003); still preparing: worker 1");
}

TEST_CASE("start barrier: who is missing ends the run at the key that holds for it") {
  Config config = FailingBy(WorkerLost::kFail);
  config.failure.startup_timeout_s = 20;
  config.failure.wait_s = 30;
  Barrier barrier(2, config);
  CHECK_NOTHROW(barrier.CheckAfter(20));
  CHECK_THROWS_WITH_AS(
      barrier.CheckAfter(20.1),
      "not all tasks came in 20 s (failure.startup_timeout_s); joined 4 of 5; missing: worker 2 "
      "(127.0.0.1:11003). Start them, or look at their logs.",
      PeerLost);
  barrier.history.begun = true;
  CHECK_NOTHROW(barrier.CheckAfter(30));
  CHECK_THROWS_AS(barrier.CheckAfter(30.1), PeerLost);
}

TEST_CASE("start barrier: one that is here and prepares for long ends nothing") {
  Barrier barrier(2, FailingBy(WorkerLost::kFail));
  barrier.Join({Role::kWorker, 2});
  CHECK_NOTHROW(barrier.CheckAfter(100000));
}

Config ThreeWorkers(int64_t steps, TrainMode mode = TrainMode::kAsync) {
  Config config = LinearCluster(2, 3, steps);
  config.train.mode = mode;
  config.failure.worker_lost = WorkerLost::kWait;
  return config;
}

// ps 1 and three workers, all connected; workers 0 and 1 start together.
struct Run : PsFixture {
  explicit Run(const Config& of = ThreeWorkers(10)) : PsFixture(of) {
    for (Member& member : members.all()) {
      member.node = 2 * static_cast<net::NodeId>(1 + &member - members.all().data());
    }
    for (int index : {0, 1}) Worker(index).takes_part = true;
  }
  Member& Worker(int index) { return *members.Worker(index); }
  const wire::Start& Tell(Member& member, bool over = false) {
    start.Tell(member, kRequest, over);
    return Told(member);
  }
  const wire::Start& Told(const Member& member) const {
    REQUIRE(!channel.sent.empty());
    CHECK(channel.sent.back().to == member.node);
    CHECK(channel.sent.back().envelope().request() == kRequest);
    return *channel.sent.back().envelope().body_as_Start();
  }
  static Indices Together(const wire::Start& start) {
    return start.workers() == nullptr ? Indices() : Indices(start.workers()->begin(), start.workers()->end());
  }
  // Decides a round with a gradient of every worker.
  void DecideRound(uint64_t version) {
    const net::Message pull = Make([](auto& builder) {
      return wire::CreatePull(builder, 0, true, builder.CreateVector(Indices{0, 1, 2}));
    });
    rounds.ExpectTogether(*net::Decode(pull)->body_as_Pull()->workers());
    for (int worker = 0; worker < 3; ++worker) rounds.Offer({worker, 0}, version);
    REQUIRE(rule.rounds.size() == 1);
  }

  RunHistory history;
  RunPositions positions{config, members};
  Logger log{"ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  const Layout layout;
  Leases leases{config, layout, members, history, outbox, log};
  Steps steps{config, members, outbox, leases};
  Rounds rounds{config, members, outbox, rule};
  RunStart start{{members, positions, history, steps, leases, rounds, rule, outbox, log}};
};

TEST_CASE(
    "run start: who starts together hears whether the weights are initial values, one that comes later "
    "not") {
  Run run;
  CHECK_FALSE(run.Tell(run.Worker(0)).initial());
  run.history.from_initial = true;
  CHECK(run.Tell(run.Worker(0)).initial());
  run.steps.Applied(run.Worker(0));
  CHECK_FALSE(run.Tell(run.Worker(2)).initial());
}

TEST_CASE("run start: every task hears of the newest checkpoint, on which host it is and of which step") {
  Run run;
  CHECK(run.Tell(run.Worker(1)).checkpoint() == nullptr);
  run.history.checkpoint = "/ckpt/step-000000007";
  run.history.checkpoint_step = 7;
  const wire::Start& start = run.Tell(run.members.At({Role::kPs, 1}));
  REQUIRE(start.checkpoint() != nullptr);
  CHECK(start.checkpoint()->str() == HostName() + ":/ckpt/step-000000007");
  CHECK(start.checkpoint_step() == 7);
}

TEST_CASE("run start: a worker hears how the run has its features scaled") {
  Run run;
  CHECK(run.Tell(run.Worker(1)).inputs() == nullptr);
  run.history.fit.scale = {{1, 2}, {0.5, 4}};
  const wire::Start& start = run.Tell(run.Worker(1));
  REQUIRE(start.inputs() != nullptr);
  const std::optional<InputForm> said = DecodeForm(*start.inputs());
  REQUIRE(said.has_value());
  CHECK(said->scale == run.history.fit.scale);
  CHECK(said->features.empty());
}

TEST_CASE("run start: those who start together are named, and nobody to one that comes after a step") {
  Run run;
  CHECK(Run::Together(run.Tell(run.Worker(0))) == Indices{0, 1});
  CHECK(Run::Together(run.Tell(run.Worker(1))) == Indices{0, 1});
  run.steps.Applied(run.Worker(0));
  const wire::Start& late = run.Tell(run.Worker(2));
  CHECK(Run::Together(late).empty());
  CHECK(late.steps() == 1);
  CHECK(run.Worker(2).takes_part);
}

TEST_CASE("run start: a ps is told neither steps nor to take part") {
  Run run;
  Member& ps = run.members.At({Role::kPs, 1});
  const wire::Start& start = run.Tell(ps);
  CHECK(start.steps() == 0);
  CHECK_FALSE(ps.takes_part);
}

TEST_CASE(
    "run start: a worker begins behind its gradients that were taken, with the clock that the rule says") {
  Run run;
  run.Worker(1).taken = 5;
  run.Worker(1).lost = true;
  run.rule.clock = 4;
  const wire::Start& start = run.Tell(run.Worker(1));
  CHECK(start.local_step() == 5);
  CHECK(start.clock() == 4);
  CHECK_FALSE(start.resume());
  CHECK(start.steps() == 1);
  CHECK(run.Worker(1).open_steps == 1);
  CHECK_FALSE(run.Worker(1).lost);
}

TEST_CASE("run start: the log says of a lost worker that it is back, and of no other") {
  Run run;
  run.Worker(1).lost = true;
  run.Tell(run.Worker(0));
  CHECK(testing::FileContent(run.log.path()).find("is back") == std::string::npos);
  run.Tell(run.Worker(1));
  const std::string line = run.members.NameOf(run.Worker(1)) + " is back: the run goes on with it";
  CHECK(testing::FileContent(run.log.path()).find(line) != std::string::npos);
}

TEST_CASE("run start: a worker that rounds waited for computes its last gradient again, without a grant") {
  Run run(ThreeWorkers(10, TrainMode::kSync));
  run.Worker(1).taken = 5;
  run.steps.BeginAt(9);
  run.rounds.BeginAt(9);
  run.DecideRound(9);
  run.steps.RoundApplied();
  REQUIRE(run.steps.over());
  run.rounds.Leave(run.Worker(1), /*comes_back=*/true);
  run.Worker(1).lost = true;
  const wire::Start& start = run.Tell(run.Worker(1));
  CHECK(start.local_step() == 5);
  CHECK(start.resume());
  CHECK(start.version() == 9);
  CHECK(start.steps() == 1);
  CHECK_FALSE(run.Worker(1).lost);
}

TEST_CASE("run start: one that had left with all done takes part again while steps are left") {
  Run run;
  run.Worker(1).done = true;
  CHECK(run.Tell(run.Worker(1)).steps() == 1);
  CHECK_FALSE(run.Worker(1).done);
}

TEST_CASE("run start: who comes when the last step is applied hears that it is over, unless it is needed") {
  Run run(ThreeWorkers(1));
  run.Worker(2).told = true;
  run.Tell(run.Worker(0));
  run.steps.Applied(run.Worker(0));
  REQUIRE(run.steps.over());
  run.Worker(2).taken = 3;
  const wire::Start& start = run.Tell(run.Worker(2));
  CHECK(start.over());
  CHECK(start.local_step() == 3);
  CHECK_FALSE(run.Worker(2).takes_part);
  CHECK_FALSE(run.Worker(2).told);  // it has not said Bye yet
  CHECK_FALSE(run.Tell(run.Worker(1)).over());
  CHECK_FALSE(run.Tell(run.Worker(0)).over());
}

TEST_CASE("run start: when the run is over only the ps are told anything else") {
  Run run;
  CHECK(run.Tell(run.Worker(1), /*over=*/true).over());
  CHECK_FALSE(run.Tell(run.members.At({Role::kPs, 1}), true).over());
  CHECK(run.Tell(run.Worker(0), true).over());
}

TEST_CASE("run positions: of a synchronous run they say whether its bits depended on timing") {
  for (const Split split : {Split::kShard, Split::kDynamic}) {
    Config config = ThreeWorkers(10, TrainMode::kSync);
    config.data.split = split;
    Run run(config);
    run.positions.Take(StartOfData(config, 100), 0);
    Positions now;
    REQUIRE(FromJson(run.positions.Now(std::nullopt), &now));
    CHECK(now.disturbed == (split == Split::kDynamic));
  }
}

}  // namespace
}  // namespace dtrain
