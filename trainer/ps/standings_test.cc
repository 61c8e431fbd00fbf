#include "trainer/ps/standings.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// One ps more and two workers, which take part.
class Run {
 public:
  explicit Run(WorkerLost worker_lost) {
    config.failure.worker_lost = worker_lost;
    config.failure.wait_s = 30;
    for (int worker = 0; worker < 2; ++worker) Of(worker).takes_part = true;
  }
  Standing& Of(int worker) { return standings.Of(*members.Worker(worker)); }
  void Lose(int worker, TimePoint now) {
    Of(worker).Leave();
    Of(worker).lost = true;
    Of(worker).lost_at = now;
  }

  Config config = LinearCluster(2, 2, 10);
  Membership members{config, {Role::kPs, 0}};
  Standings standings{config, members};
};

TEST_CASE(
    "standings: a worker that is lost is expected back, and not done, only where the run waits for it") {
  for (const WorkerLost worker_lost : {WorkerLost::kWait, WorkerLost::kContinue}) {
    const bool waits = worker_lost == WorkerLost::kWait;
    Run run(worker_lost);
    run.Of(0).done = true;
    run.Lose(1, TimePoint());
    CHECK(run.standings.Expected() == (waits ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0}));
    CHECK(run.standings.WorkersNow() == std::vector<bool>{true, waits});
    CHECK(run.standings.AllDone() == !waits);
  }
}

TEST_CASE("standings: all are done when each that takes part is") {
  Run run(WorkerLost::kFail);
  run.Of(0).done = true;
  CHECK_FALSE(run.standings.AllDone());
  run.Of(1).done = true;
  CHECK(run.standings.AllDone());
}

TEST_CASE("standings: a worker that was lost may return while it is started again, and once it is here") {
  const TimePoint now = Clock::now();
  Run run(WorkerLost::kContinue);
  CHECK_FALSE(run.standings.MayReturn(now));
  run.Lose(1, now);
  CHECK_FALSE(run.standings.MayReturn(now));
  run.config.failure.restarts = 1;
  run.config.failure.detect_s = 5;
  CHECK(run.standings.MayReturn(now + std::chrono::seconds(20)));
  CHECK_FALSE(run.standings.MayReturn(now + std::chrono::seconds(21)));
  run.members.Worker(1)->node = 4;
  CHECK(run.standings.MayReturn(now + std::chrono::seconds(21)));
  run.Of(1).done = true;
  CHECK_FALSE(run.standings.MayReturn(now));
}

TEST_CASE("standings: who is not here needs not be told of the end") {
  Run run(WorkerLost::kFail);
  CHECK(run.standings.AllTold());
  run.members.Worker(1)->node = 4;
  CHECK_FALSE(run.standings.AllTold());
  run.Of(1).told = true;
  CHECK(run.standings.AllTold());
}

TEST_CASE("standings: one that is waited for has failure.wait_s to come back") {
  const TimePoint now = Clock::now();
  Run run(WorkerLost::kWait);
  run.Lose(1, now);
  CHECK_NOTHROW(run.standings.CheckAwaited(now + std::chrono::seconds(30)));
  CHECK_THROWS_WITH_AS(run.standings.CheckAwaited(now + std::chrono::seconds(31)),
                       "worker 1 (127.0.0.1:11002; never seen) was lost and is not back after 30 s "
                       "(failure.wait_s). Look at its log.",
                       PeerLost);
  run.members.Worker(1)->node = 4;
  CHECK_NOTHROW(run.standings.CheckAwaited(now + std::chrono::seconds(31)));
}

}  // namespace
}  // namespace dtrain
