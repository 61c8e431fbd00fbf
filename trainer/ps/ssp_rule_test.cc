#include "trainer/ps/ssp_rule.h"

#include <doctest/doctest.h>

#include <string>

#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

const TimePoint kNow = TimePoint() + milliseconds(1000);

struct Hosts {
  explicit Hosts(int workers) : config(LinearCluster(1, workers, 10)) {}
  Member& Worker(int index) { return *members.Worker(index); }
  void Place(int index, const std::string& host, int64_t at_once) {
    Worker(index).host = host;
    Worker(index).at_once = at_once;
  }
  bool Free(int index, TimePoint now) { return HasSlot(members, Worker(index), now); }

  Config config;
  TaskTable members{config, {Role::kPs, 0}};
};

// A host with three workers and processors for two of them, and one worker elsewhere.
struct TwoOfThree : Hosts {
  TwoOfThree() : Hosts(4) {
    for (const int worker : {0, 1, 2}) Place(worker, "here", 2);
    Place(3, "there", 1);
  }
};

TEST_CASE("ssp: as many workers of a host compute as it has processors for") {
  TwoOfThree hosts;
  hosts.Worker(0).turn = kNow;
  CHECK(hosts.Free(1, kNow));
  hosts.Worker(1).turn = kNow;
  CHECK_FALSE(hosts.Free(2, kNow));
  CHECK(hosts.Free(3, kNow));  // another host
  hosts.Worker(0).turn.reset();
  CHECK(hosts.Free(2, kNow));
}

TEST_CASE("ssp: a worker that computes for long keeps no other waiting for its processor") {
  TwoOfThree hosts;
  hosts.Worker(0).turn = kNow;
  hosts.Worker(1).turn = kNow + milliseconds(1);
  CHECK_FALSE(hosts.Free(2, kNow + kMaxSlot - milliseconds(1)));
  CHECK(hosts.Free(2, kNow + kMaxSlot));
}

TEST_CASE("ssp: a worker that says nothing of its host is never kept waiting for a processor") {
  Hosts hosts(2);
  hosts.Worker(0).turn = kNow;
  CHECK(hosts.Free(1, kNow));
}

TEST_CASE("ssp: one worker alone always has a processor") {
  Hosts hosts(1);
  hosts.Place(0, "here", 1);
  CHECK(hosts.Free(0, kNow));
}

}  // namespace
}  // namespace dtrain
