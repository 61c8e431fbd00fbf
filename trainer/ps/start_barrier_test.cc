#include "trainer/ps/start_barrier.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// ps 0 and ps 1, and workers, of which those become ready that a test says.
class Start {
 public:
  explicit Start(int workers, const Config& config) : config_(config) {
    Ready({Role::kPs, 1});
    for (int worker = 0; worker < workers; ++worker) Ready({Role::kWorker, worker});
  }
  void Ready(TaskId task) {
    Join(task);
    standings_.Of(members_.At(task)).ready = true;
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
  Membership members_{config_, {Role::kPs, 0}};
  Standings standings_{config_, members_};
  Logger log_{"ps 0", {}};
  StartBarrier barrier_{config_, members_, standings_, history, log_, begun_};
};

Config ThreeWorkers(WorkerLost worker_lost) {
  Config config = LinearCluster(2, 3, 10);
  config.failure.worker_lost = worker_lost;
  return config;
}

TEST_CASE("start barrier: a run begins when all are ready") {
  Start start(2, ThreeWorkers(WorkerLost::kContinue));
  CHECK_FALSE(start.LookAfter(0).has_value());
  start.Ready({Role::kWorker, 2});
  const std::optional<StartBarrier::Enough> enough = start.LookAfter(0);
  REQUIRE(enough.has_value());
  CHECK(enough->all);
}

TEST_CASE("start barrier: min_workers of them are enough, whichever they are") {
  Config config = ThreeWorkers(WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  Start start(0, config);
  CHECK_FALSE(start.LookAfter(1000).has_value());
  start.Ready({Role::kWorker, 1});
  const std::optional<StartBarrier::Enough> enough = start.LookAfter(1001);
  REQUIRE(enough.has_value());
  CHECK_FALSE(enough->all);
}

TEST_CASE("start barrier: no run begins without worker 0 where that feeds the others") {
  Config config = ThreeWorkers(WorkerLost::kContinue);
  config.cluster.min_workers = 1;
  config.data.split = Split::kFeed;
  Start start(0, config);
  start.Ready({Role::kWorker, 1});
  CHECK_FALSE(start.LookAfter(1000).has_value());
  start.Ready({Role::kWorker, 0});
  CHECK(start.LookAfter(1001).has_value());
}

TEST_CASE("start barrier: no run begins without all of its ps") {
  Start start(3, LinearCluster(3, 3, 10));
  CHECK_FALSE(start.LookAfter(0).has_value());
  start.Ready({Role::kPs, 2});
  CHECK(start.LookAfter(0).has_value());
}

TEST_CASE("start barrier: a run that goes on takes those that took part, after twice detect_s any one") {
  Start start(1, ThreeWorkers(WorkerLost::kContinue));
  start.history.begun = true;
  start.history.here = {true, true, false};
  CHECK_FALSE(start.LookAfter(0).has_value());
  CHECK_FALSE(start.LookAfter(4).has_value());  // detect_s is 2
  CHECK(start.LookAfter(4.1).has_value());
}

TEST_CASE("start barrier: with worker_lost: wait a run goes on with no fewer than took part") {
  Config config = ThreeWorkers(WorkerLost::kWait);
  config.cluster.min_workers = 1;
  Start start(2, config);
  start.history.begun = true;
  start.history.here = {true, true, true};
  CHECK_FALSE(start.LookAfter(0).has_value());
  CHECK_FALSE(start.LookAfter(1000).has_value());
  start.Ready({Role::kWorker, 2});
  CHECK(start.LookAfter(1000).has_value());
}

TEST_CASE("start barrier: its status names who is missing and who still prepares") {
  Start start(1, ThreeWorkers(WorkerLost::kFail));
  start.Join({Role::kWorker, 1});
  CHECK(start.Status() == "joined 4 of 5; missing: worker 2 (127.0.0.1:11003); still preparing: worker 1");
}

TEST_CASE("start barrier: who is missing ends the run at the key that holds for it") {
  Config config = ThreeWorkers(WorkerLost::kFail);
  config.failure.startup_timeout_s = 20;
  config.failure.wait_s = 30;
  Start start(2, config);
  CHECK_NOTHROW(start.CheckAfter(20));
  CHECK_THROWS_WITH_AS(
      start.CheckAfter(20.1),
      "not all tasks came in 20 s (failure.startup_timeout_s); joined 4 of 5; missing: worker 2 "
      "(127.0.0.1:11003). Start them, or look at their logs.",
      PeerLost);
  start.history.begun = true;
  CHECK_NOTHROW(start.CheckAfter(30));
  CHECK_THROWS_AS(start.CheckAfter(30.1), PeerLost);
}

TEST_CASE("start barrier: one that is here and prepares for long ends nothing") {
  Start start(2, ThreeWorkers(WorkerLost::kFail));
  start.Join({Role::kWorker, 2});
  CHECK_NOTHROW(start.CheckAfter(100000));
}

}  // namespace
}  // namespace dtrain
