#include "trainer/model/thread_team.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("thread team: every member runs each job once, and the caller sees what it wrote") {
  for (const int64_t members : {1, 2, 5}) {
    ThreadTeam team(members);
    std::vector<int64_t> runs(static_cast<size_t>(members));
    for (int64_t round = 1; round <= 1000; ++round) {
      team.Run([&](int64_t member) { ++runs[static_cast<size_t>(member)]; });
      REQUIRE(runs == std::vector<int64_t>(static_cast<size_t>(members), round));
    }
  }
}

TEST_CASE("thread team: the members are threads of their own, the same ones in every job") {
  ThreadTeam team(3);
  std::vector<std::thread::id> first(3), second(3);
  team.Run([&](int64_t member) { first[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  team.Run([&](int64_t member) { second[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  CHECK((first == second));
  CHECK((first[0] == std::this_thread::get_id()));
  CHECK((first[1] != first[0]));
  CHECK((first[2] != first[0]));
  CHECK((first[2] != first[1]));
}

TEST_CASE("thread team: a member reads in one job what another one wrote in the job before") {
  ThreadTeam team(2);
  int64_t written[2] = {0, 0}, read[2] = {0, 0};
  team.Run([&](int64_t member) { written[member] = 10 + member; });
  team.Run([&](int64_t member) { read[member] = written[1 - member]; });
  CHECK(read[0] == 11);
  CHECK(read[1] == 10);
}

TEST_CASE("thread team: what members throw is thrown to the caller, the lowest first, and the team goes on") {
  ThreadTeam team(4);
  const auto fails = [](int64_t member) {
    if (member >= 2) throw std::runtime_error("member " + std::to_string(member));
  };
  CHECK_THROWS_WITH(team.Run(fails), "member 2");
  int64_t sum = 0;
  CHECK_NOTHROW(team.Run([&](int64_t member) {
    if (member == 3) sum += member;
  }));
  CHECK(sum == 3);
}

}  // namespace
}  // namespace dtrain
