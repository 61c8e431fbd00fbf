// SaveDesk and what goes wrong while a checkpoint is written.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/ps/save_desk_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("save desk: one that fails is told with its reason, and what was asked for meanwhile is tried") {
  SaveDeskFixture f(Saving(TrainMode::kSync));
  f.desk.Ask(false);
  f.Complete(1);
  f.step = 4;
  f.desk.Ask(false);
  f.Kept(2);
  f.FailsToWrite(2, "the disk is full");
  REQUIRE(f.ended.size() == 2);
  CHECK(f.ended[0] == "");
  CHECK(f.ended[1].find("the disk is full") != std::string::npos);
  CHECK(f.desk.saved_step() == 0);
  CHECK(f.history.checkpoint == f.PathOf("step-000000000"));
  CHECK(f.Logged("the checkpoint of global step 4 could not be written: ps 1 "));
  f.desk.Ask(false);
  f.Kept(3);
  f.desk.Ask(true);
  f.FailsToWrite(3, "the disk is full");
  CHECK_FALSE(f.desk.idle());
  CHECK(f.ended.size() == 2);
  f.Complete(4);
  CHECK(f.desk.saved_step() == 4);
  CHECK(f.rule.held);
  CHECK(testing::NamesIn(f.config.checkpoint.dir).size() == 2);
}

TEST_CASE("save desk: a ps that does not see the directory is not told to write, but asked for its pieces") {
  SaveDeskFixture f(Saving(TrainMode::kAsync));
  f.sees_directory = false;
  f.desk.Ask(false);
  CHECK(f.LastCut() != nullptr);
  f.Kept(1);
  PollUntil([&] {
    f.desk.Tick(Clock::now());
    return f.pieces_asked > 0;
  });
  CHECK(f.LastCut() == nullptr);
  f.Kept(1);  // whatever it says of a part is none
  CHECK(f.ended.empty());
}

TEST_CASE("save desk: where another process has taken the directory nothing is published, and the run ends") {
  SaveDeskFixture f(Saving(TrainMode::kAsync, 1));
  f.directory.Claim("ps 0", kSaveRun.id);
  f.desk.Ask(false);
  std::filesystem::remove(f.config.checkpoint.dir + "/.in-use");
  CheckpointDirectory other(f.config.checkpoint.dir);
  other.Claim("another ps 0", kSaveRun.id);
  CHECK_THROWS_AS(f.WaitForEnd(), PeerLost);
  CHECK(testing::NamesIn(f.config.checkpoint.dir) == std::vector<std::string>{".in-use"});
}

TEST_CASE("save desk: a checkpoint that takes longer than checkpoint.timeout_s is given up") {
  Config config = Saving(TrainMode::kSync);
  config.checkpoint.timeout_s = 5;
  const auto later = [](double seconds) { return Clock::now() + Seconds(seconds); };
  SUBCASE("one that a ps never keeps its range for: rounds go on") {
    SaveDeskFixture f(config);
    f.desk.Ask(false);
    f.desk.Tick(later(4));
    CHECK(f.ended.empty());
    f.desk.Tick(later(6));
    REQUIRE(f.ended.size() == 1);
    CHECK(f.ended[0] == "it is not complete after 5 s (checkpoint.timeout_s)");
    CHECK_FALSE(f.rule.held);
    CHECK(f.desk.idle());
  }
  SUBCASE("one that is being written: what waits for it hears so, and it ends when the disk lets it") {
    SaveDeskFixture f(config);
    f.desk.Ask(true);
    f.Kept(1);
    f.desk.Tick(Clock::now());
    CHECK_FALSE(f.desk.idle());
    f.desk.Tick(later(6));
    CHECK(f.ended.size() == 1);
    CHECK(f.Logged("is given up: it is not complete after 5 s (checkpoint.timeout_s)"));
  }
  SUBCASE("one of a ps whose pieces never come") {
    SaveDeskFixture f(config);
    f.sees_directory = false;
    f.desk.Ask(true);
    f.Kept(1);
    PollUntil([&] {
      f.desk.Tick(Clock::now());
      return f.pieces_asked > 0;
    });
    f.desk.Tick(later(6));
    CHECK(f.ended.size() == 1);
    f.WaitForEnd();
    CHECK(f.desk.idle());
    CHECK(testing::NamesIn(f.config.checkpoint.dir).empty());
  }
}

}  // namespace
}  // namespace dtrain
