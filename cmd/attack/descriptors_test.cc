// Connections that strangers hold: while a ps has no descriptors to spare, its tasks still reach it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cmd/testing/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr int kPeers = 2000;
// bench/run.sh --only attack measures how long it takes: a busy machine takes longer.
constexpr milliseconds kJoins{15000};

TEST_CASE("attack: a worker joins while 2,000 idle connections are held at a ps with 1,024 descriptors") {
  if (!RaiseFileLimit(2 * kPeers)) return Skip("the system gives this process too few descriptors");
  HonestRun run({}, "ulimit -n 1024");
  {
    const Holder holder(run.address(), kPeers);
    const TimePoint until = Clock::now() + std::chrono::seconds(5);
    while (holder.opened() < kPeers && Clock::now() < until) run.CheckGoesOn();
    const auto worker = run.cluster().Start("worker", 1);
    CHECK(worker->WaitForLine("local step ", kJoins));
    run.CheckGoesOn();
    run.CheckMemory(kPeers);
  }
  run.CheckGoesOn();
}

}  // namespace
}  // namespace dtrain::testing
