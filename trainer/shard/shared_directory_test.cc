#include "trainer/shard/shared_directory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr RunId kRun{77, 1};
constexpr TaskId kPs1{Role::kPs, 1};

Config In(const std::string& dir) {
  Config config = LinearCluster(2, 1, 10);
  config.checkpoint.dir = dir;
  return config;
}

struct Ps {
  explicit Ps(const std::string& dir, const std::string& why_not = "")
      : config(In(dir)), shared(config, kPs1, why_not, log) {}
  const Config config;
  Logger log{"ps 1", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  SharedDirectory shared;
  bool Logged(const std::string& text) const {
    return testing::FileContent(log.path()).find(text) != std::string::npos;
  }
};

TEST_CASE("shared directory: a ps that finds the mark of this run sees the directory, by whatever path") {
  const std::string root = testing::NewDirectory(), dir = root + "/ckpt";
  const auto shown = ShowSharedDirectory(In(dir), kRun, Claim::kNew);
  std::filesystem::create_directory_symlink(dir, root + "/link");
  for (const std::string& path : {dir, root + "/link"}) {
    Ps ps(path);
    CHECK(ps.shared.Seen(kRun, true) == true);
    CHECK(ps.shared.seen());
    CHECK(ps.Logged("reads and writes its part of checkpoints in " + path));
  }
}

TEST_CASE("shared directory: one without a directory, or whose directory is not there, does not wait") {
  for (const std::string& dir : {std::string(), testing::NewDirectory() + "/none"}) {
    Ps ps(dir);
    CHECK(ps.shared.Seen(kRun, true) == false);
    CHECK_FALSE(ps.shared.seen());
    CHECK(ps.Logged("sends its part of checkpoints to ps 0"));
  }
  Ps many(testing::NewDirectory(), "too many pieces");
  CHECK(many.shared.Seen(kRun, true) == false);
  CHECK(many.Logged("sends its part of checkpoints to ps 0: too many pieces"));
  Ps none(testing::NewDirectory());
  CHECK(none.shared.Seen(kRun, false) == false);  // ps 0 saves nothing
  CHECK_FALSE(none.Logged("checkpoints"));
}

TEST_CASE(
    "shared directory: a directory without the mark may be slow to show it, and is another one in the end") {
  const std::string dir = testing::NewDirectory();
  const auto of_another_run = ShowSharedDirectory(In(dir), {78, 1}, Claim::kNew);
  Ps ps(dir);
  CHECK_FALSE(ps.shared.Seen(kRun, true).has_value());
  CheckpointDirectory late(dir);
  late.BeginSave(0, SaveToken(kRun, 0));
  CHECK(ps.shared.Seen(kRun, true) == true);
  // After a rollback the ps looks again.
  CHECK_FALSE(ps.shared.Seen({77, 2}, true).has_value());
  CHECK_FALSE(ps.shared.seen());
}

TEST_CASE("shared directory: ps 0 of a run that begins refuses one in use; one that goes on has lost it") {
  const std::string dir = testing::NewDirectory();
  const auto first = ShowSharedDirectory(In(dir), kRun, Claim::kNew);
  CHECK_THROWS_AS(ShowSharedDirectory(In(dir), {78, 0}, Claim::kNew), UserError);
  CHECK_THROWS_AS(ShowSharedDirectory(In(dir), {78, 1}, Claim::kAgain), PeerLost);
}

TEST_CASE("shared directory: the mark's name is a function of the run, its epoch and the save") {
  CHECK(SaveToken({0x1f, 3}, 12) == "000000000000001f-3-12");
}

}  // namespace
}  // namespace dtrain
