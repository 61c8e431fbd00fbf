// Connections that strangers hold: while a ps has no descriptors to spare, its tasks still reach it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <list>

#include "cmd/attack/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr int kPeers = 2000;
constexpr int kThreads = 4;
// A worker joins at once where nobody disturbs it, and today never: no tight bound is needed.
constexpr milliseconds kJoins{15000};

// Room for the attackers' own connections; false: the system gives none.
bool RaiseOwnLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 2 * kPeers));
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= 2 * kPeers;
}

// Keeps that many connections with a handshake, and opens another one for each that is closed.
class Holder {
 public:
  Holder(std::string address, int count)
      : address_(std::move(address)), count_(static_cast<size_t>(count)), flood_([this] { return Turn(); }) {}
  int64_t opened() const { return flood_.times(); }

 private:
  bool Turn() {
    if (held_.size() < count_) {
      held_.emplace_back(address_);
      held_.back().Handshake(net::NewNodeId(), milliseconds(20));
    } else if (held_.front().ClosedIn(milliseconds(1))) {
      held_.pop_front();
    } else {
      held_.splice(held_.end(), held_, held_.begin());
    }
    return true;
  }

  const std::string address_;
  const size_t count_;
  std::list<RawPeer> held_;
  Flood flood_;  // last: its thread uses the others
};

TEST_CASE("attack: a worker joins while 2,000 idle connections are held at a ps with 1,024 descriptors") {
  if (!RaiseOwnLimit()) return Skip("the system gives this process too few descriptors");
  HonestRun run({}, "ulimit -n 1024");
  {
    std::vector<std::unique_ptr<Holder>> holders;
    for (int i = 0; i < kThreads; ++i) {
      holders.push_back(std::make_unique<Holder>(run.address(), kPeers / kThreads));
    }
    const auto opened = [&] {
      int64_t sum = 0;
      for (const auto& holder : holders) sum += holder->opened();
      return sum;
    };
    const TimePoint until = Clock::now() + std::chrono::seconds(5);
    while (opened() < kPeers && Clock::now() < until) run.CheckGoesOn();
    const auto worker = run.cluster().Start("worker", 1);
    CHECK(worker->WaitForLine("local step ", kJoins));
    run.CheckGoesOn();
    run.CheckMemory(kPeers);
  }
  run.CheckGoesOn();
}

}  // namespace
}  // namespace dtrain::testing
