#include "trainer/leader/lost_workers.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using std::chrono::seconds;

// A second ps and two workers, which take part.
class Run {
 public:
  explicit Run(WorkerLost worker_lost) {
    config.failure.worker_lost = worker_lost;
    config.failure.wait_s = 30;
    config.failure.detect_s = 5;
    for (int worker = 0; worker < 2; ++worker) {
      Of(worker).takes_part = true;
      Join(worker, "node, pid 1");
    }
  }
  Member& Of(int worker) { return *members.Worker(worker); }
  void Join(int worker, const std::string& process) {
    Of(worker).process = process;
    lost.NoteProcess(Of(worker));
  }
  void Lose(int worker) {
    Of(worker).Leave();
    Of(worker).lost = true;
    Of(worker).lost_at = now;
  }

  Config config = LinearCluster(2, 2, 10);
  TaskTable members{config, {Role::kPs, 0}};
  RunHistory history;
  Logger log{"ps 0", LogOptions{LogLevel::kError, false, "", false}};
  LostWorkers lost{config, members, history, log};
  const TimePoint now = Clock::now();
};

TEST_CASE("lost workers: one may return while it is started again, and once it is here") {
  Run run(WorkerLost::kContinue);
  CHECK_FALSE(run.lost.MayReturn(run.now));
  run.Lose(1);
  CHECK_FALSE(run.lost.MayReturn(run.now));
  CHECK(run.lost.WaitingText(run.now, /*at_end=*/true) == "");
  run.config.failure.restarts = 1;
  CHECK(run.lost.MayReturn(run.now + seconds(20)));
  CHECK(run.lost.WaitingText(run.now + seconds(20), true) == "waiting for worker 1; ends without it in 1 s");
  CHECK(run.lost.WaitingText(run.now + seconds(20), false) == "");
  CHECK_FALSE(run.lost.MayReturn(run.now + seconds(21)));
  run.Of(1).node = 4;
  CHECK(run.lost.MayReturn(run.now + seconds(21)));
  run.Of(1).done = true;
  CHECK_FALSE(run.lost.MayReturn(run.now));
}

TEST_CASE("lost workers: one that was started again as often as may be does not return") {
  Run run(WorkerLost::kContinue);
  run.config.failure.restarts = 1;
  run.Join(1, "node, pid 1");  // the same process, after a cut connection
  run.Lose(1);
  CHECK(run.lost.MayReturn(run.now));
  run.Join(1, "node, pid 2");
  CHECK_FALSE(run.lost.MayReturn(run.now));
  CHECK(run.lost.WaitingText(run.now, /*at_end=*/true) == "");
}

TEST_CASE("lost workers: one that is waited for has failure.wait_s to come back") {
  Run run(WorkerLost::kWait);
  CHECK(run.lost.WaitingText(run.now, false) == "");
  run.Lose(1);
  CHECK(run.lost.WaitingText(run.now + seconds(10), false) == "waiting for worker 1; gives up in 20 s");
  CHECK_NOTHROW(run.lost.Tick(run.now + seconds(30), false));
  CHECK_THROWS_WITH_AS(run.lost.Tick(run.now + seconds(31), false),
                       "worker 1 (127.0.0.1:11002; node, pid 1) was lost and is not back after 30 s "
                       "(failure.wait_s). Look at its log.",
                       PeerLost);
  run.Of(1).node = 4;
  CHECK(run.lost.WaitingText(run.now, false) == "");
  CHECK_NOTHROW(run.lost.Tick(run.now + seconds(31), false));
}

TEST_CASE("lost workers: what becomes of the rows is said where the run goes on without their worker") {
  Run run(WorkerLost::kContinue);
  CHECK(run.lost.RowsText(run.Of(1)) == "; nobody trains on its share of the rows (1 of 2) until it is back");
  run.config.data.split = Split::kFull;
  CHECK(run.lost.RowsText(run.Of(1)) == "; the others read the same rows (data.split: full)");
  run.Of(1).done = true;
  CHECK(run.lost.RowsText(run.Of(1)) == "");
  CHECK(run.lost.RowsText(run.members.Ps(1)) == "");
}

}  // namespace
}  // namespace dtrain
