#include "trainer/checkpoint/checkpoint_directory.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

std::string SaveStep(CheckpointDirectory* directory, int64_t step, uint64_t salt = 1) {
  SmallCheckpoint of;
  of.step = step;
  of.salt = salt;
  return SaveSmall(directory, of);
}

std::vector<std::string> ListedNames(const CheckpointDirectory& directory) {
  std::vector<std::string> names;
  for (const ListedCheckpoint& each : directory.List()) names.push_back(each.name);
  return names;
}

float FirstWeight(const std::string& path) {
  float value = 0;
  CheckpointReader(path).Read("weights/W1", CheckpointReader::kWeights, 0, 1, &value);
  return value;
}

using Names = std::vector<std::string>;

TEST_CASE(
    "directory: a checkpoint has its name and its files when it is published, and nothing else is there") {
  CheckpointDirectory directory(NewDirectory() + "/a/b");
  directory.Prepare();
  CHECK(NamesIn(directory.path()).empty());
  const std::string path = SaveStep(&directory, 12000);
  CHECK(path == directory.path() + "/step-000012000");
  CHECK(NamesIn(directory.path()) == Names{"step-000012000"});
  CHECK(NamesIn(path) == Names{"config.yaml", "manifest", "shard-0-of-2", "shard-1-of-2"});
  std::vector<std::string> skipped;
  CHECK(directory.FindNewest(&skipped) == path);
  CHECK(skipped.empty());
}

TEST_CASE("directory: the oldest goes, but neither the newest nor the best") {
  CheckpointDirectory directory(NewDirectory());
  for (const int64_t step : {1, 2, 3, 4}) SaveStep(&directory, step);
  directory.WriteBest("step-000000001");
  CHECK(directory.RemoveOldest() == Names{"step-000000002"});
  CHECK(directory.RemoveOldest() == Names{"step-000000003"});
  CHECK(directory.RemoveOldest().empty());
  CHECK(ListedNames(directory) == Names{"step-000000004", "step-000000001"});
}

TEST_CASE("directory: one that is gone is made anew and claimed again, and one that is there is left alone") {
  CheckpointDirectory directory(NewDirectory() + "/ckpt");
  directory.Prepare();
  directory.Claim("ps 0", 1);
  CHECK_FALSE(directory.MakeAnewIfGone());
  std::filesystem::rename(directory.path(), directory.path() + "-old");
  CHECK(directory.MakeAnewIfGone());
  CHECK(std::filesystem::exists(SaveStep(&directory, 7) + "/manifest"));
  CheckpointDirectory other(directory.path());
  CHECK_THROWS_AS(other.Claim("another", 2), UserError);
}

TEST_CASE("directory: the newest is the one that was written last, whatever its step") {
  CheckpointDirectory directory(NewDirectory());
  SaveStep(&directory, 500);
  SaveStep(&directory, 1000);
  const std::string last = SaveStep(&directory, 0);
  CHECK(ListedNames(directory) == Names{"step-000000000", "step-000001000", "step-000000500"});
  CHECK(directory.List()[0].sequence == 3);
  std::vector<std::string> skipped;
  CHECK(directory.FindNewest(&skipped) == last);
}

TEST_CASE(
    "directory: a step that is saved again takes the name, and the other one stays complete until it is "
    "pruned") {
  CheckpointDirectory directory(NewDirectory());
  SaveStep(&directory, 7, 1);
  SaveStep(&directory, 7, 2);
  const std::string path = SaveStep(&directory, 7, 3);
  CHECK(ListedNames(directory) ==
        Names{"step-000000007", "replaced-step-000000007-2", "replaced-step-000000007-1"});
  CHECK(FirstWeight(path) == ValueOf(3, "weights/W1", 0, 0));
  CheckpointReader(directory.PathOf("replaced-step-000000007-2")).Verify();
  CHECK(FirstWeight(directory.PathOf("replaced-step-000000007-2")) == ValueOf(2, "weights/W1", 0, 0));
  directory.Prune(2);
  CHECK(NamesIn(directory.path()) == Names{"replaced-step-000000007-2", "step-000000007"});
}

TEST_CASE(
    "directory: one that made room for another of its run goes with the next pruning, unless it stays") {
  CheckpointDirectory directory(NewDirectory());
  directory.Claim("this run", 0x1122334455667788);
  for (const int64_t step : {7, 7, 8, 8}) SaveStep(&directory, step);
  directory.Prune(5, "replaced-step-000000008-3");
  CHECK(ListedNames(directory) == Names{"step-000000008", "replaced-step-000000008-3", "step-000000007"});
  CheckpointDirectory later(NewDirectory());
  later.Claim("another run", 1);
  for (int i = 0; i < 2; ++i) SaveStep(&later, 7);
  later.Prune(5);
  CHECK(ListedNames(later) == Names{"step-000000007", "replaced-step-000000007-1"});
}

TEST_CASE("directory: a damaged one of the same name makes room too") {
  CheckpointDirectory directory(NewDirectory());
  for (int i = 0; i < 2; ++i) {
    std::filesystem::remove(SaveStep(&directory, 7) + "/manifest");
  }
  SaveStep(&directory, 7);
  CHECK(NamesIn(directory.path()) ==
        Names{"replaced-step-000000007-0", "replaced-step-000000007-1", "step-000000007"});
  CHECK(ListedNames(directory) == Names{"step-000000007"});
}

TEST_CASE("directory: pruning keeps the newest and the one that stays, and what it cannot read") {
  CheckpointDirectory directory(NewDirectory());
  for (int64_t step = 1; step <= 6; ++step) SaveStep(&directory, step);
  std::filesystem::remove(directory.PathOf("step-000000003/manifest"));
  directory.Prune(2, "step-000000001");
  CHECK(NamesIn(directory.path()) ==
        Names{"step-000000001", "step-000000003", "step-000000005", "step-000000006"});
}

TEST_CASE("directory: a run's directory stands for its checkpoints") {
  const std::string run = NewDirectory();
  CHECK(CheckpointsOf(run + "//") == run);
  std::ofstream(run + "/run.json") << R"({"name": "a", "checkpoints": "/b/a/checkpoints"})";
  CHECK(CheckpointsOf(run + "/") == run + "/checkpoints");
  CHECK(IsChoiceOf(run, run + "/checkpoints/step-000000002"));
  CHECK_FALSE(IsChoiceOf(run, run + "/checkpoints/deeper/step-000000002"));
}

TEST_CASE(
    "directory: a run whose record names another place has its checkpoints there, though older ones are "
    "inside") {
  const std::string root = NewDirectory(), run = root + "/new name", elsewhere = root + "/elsewhere";
  std::filesystem::create_directories(run + "/checkpoints");
  const auto record = [&](const std::string& checkpoints) {
    std::ofstream(run + "/run.json") << Json{{"name", "a"}, {"checkpoints", checkpoints}}.dump();
  };
  record(elsewhere);
  CHECK(CheckpointsOf(run) == elsewhere);  // though that place is gone
  std::ofstream(run + "/result.json") << R"({"checkpoint": "/gone/step-000000002"})";
  CHECK(CheckpointsOf(run) == elsewhere);
  std::filesystem::create_directory(run + "/checkpoints/step-000000002");  // as `dtrain launch` fetches it
  CHECK(CheckpointsOf(run) == run + "/checkpoints");
  std::filesystem::create_directory(elsewhere);
  CHECK(CheckpointsOf(run) == elsewhere);
  // A copy means its own, also while the run that it is a copy of is there.
  std::filesystem::create_directories(root + "/a/checkpoints");
  record(root + "/a/checkpoints");
  CHECK(CheckpointsOf(run) == run + "/checkpoints");
  std::filesystem::create_directory(run + "/mine");
  record(root + "/a/mine");
  CHECK(CheckpointsOf(run) == run + "/mine");
  std::filesystem::remove_all(run + "/checkpoints");
  record(root + "/a/checkpoints");
  CHECK(CheckpointsOf(run) == root + "/a/checkpoints");
}

TEST_CASE("directory: the choices are the best one and then the newest, and a checkpoint is itself") {
  const std::string root = NewDirectory();
  CheckpointDirectory directory(root);
  std::vector<std::string> paths;
  for (const int64_t step : {2, 4, 6}) {
    SmallCheckpoint of;
    of.step = step;
    paths.push_back(SaveSmall(&directory, of));
  }
  std::vector<std::string> unreadable;
  CHECK(ChoicesOf(root, &unreadable) == std::vector<std::string>{paths[2], paths[1], paths[0]});
  directory.WriteBest("step-000000004");
  CHECK(ChoicesOf(root, &unreadable) == std::vector<std::string>{paths[1], paths[2], paths[0]});
  CHECK(ChoicesOf(paths[0], &unreadable) == std::vector<std::string>{paths[0]});
  for (const std::string& path : paths) CHECK(IsChoiceOf(root, path));
  CHECK(IsChoiceOf(paths[0], paths[0]));
  for (const std::string& path : {paths[0], std::string("step-000000002")}) CHECK_FALSE(IsChoiceOf("", path));
  CHECK_FALSE(IsChoiceOf(root, root + "/other"));
  CHECK_FALSE(IsChoiceOf(root, root + "/../x/step-000000002"));
}

TEST_CASE("directory: the best one is known by name, also when that step is saved again") {
  CheckpointDirectory directory(NewDirectory());
  CHECK(directory.ReadBest() == std::nullopt);
  SaveStep(&directory, 5, 1);
  directory.WriteBest("step-000000005");
  CHECK(directory.ReadBest() == "step-000000005");
  SaveStep(&directory, 5, 2);
  CHECK(directory.ReadBest() == "replaced-step-000000005-1");
  directory.Prune(1);
  CHECK(directory.ReadBest() == std::nullopt);
  std::ofstream(directory.PathOf("best")) << "../elsewhere\n";
  CHECK(directory.ReadBest() == std::nullopt);
}

TEST_CASE("directory: the best one's loss is what it was written with; infinity where there is none") {
  CheckpointDirectory directory(NewDirectory());
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(directory.ReadBestScore(EvalMetric::kLoss) == infinity);
  SaveStep(&directory, 5);
  directory.WriteBest("step-000000005");
  CHECK(directory.ReadBestScore(EvalMetric::kLoss) == 0.25);
  CHECK(directory.ReadBestScore(EvalMetric::kAuc) == infinity);  // it does not say
  directory.ForgetBest();
  CHECK(directory.ReadBest() == std::nullopt);
  CHECK(directory.ReadBestScore(EvalMetric::kLoss) == infinity);
  directory.ForgetBest();  // there is nothing to forget now
  directory.WriteBest("step-000000005");
  std::filesystem::resize_file(directory.PathOf("step-000000005/manifest"), 10);
  CHECK(directory.ReadBestScore(EvalMetric::kLoss) == infinity);
}

TEST_CASE("directory: who looks while a run saves and prunes always finds one, and nothing to complain of") {
  CheckpointDirectory directory(NewDirectory());
  SaveStep(&directory, 0);
  std::atomic<bool> over{false};
  std::thread run([&] {
    for (int64_t step = 1; step <= 100; ++step) {
      SaveStep(&directory, step);
      directory.Prune(1);
    }
    over = true;
  });
  const CheckpointDirectory seen(directory.path());
  int64_t looks = 0, found = 0;
  std::vector<std::string> problems;
  for (; !over; ++looks) {
    seen.List(&problems);
    found += seen.FindNewest(&problems).has_value() ? 1 : 0;
  }
  run.join();
  CHECK(found == looks);
  CHECK(problems == Names{});
}

TEST_CASE("directory: an abandoned save leaves nothing, nor does one that goes out of scope") {
  const std::string root = NewDirectory();
  CheckpointDirectory directory(root);
  const std::string temporary = directory.BeginSave(1);
  WriteShard(temporary, {}, 0);
  CHECK(NamesIn(root).size() == 2);
  directory.Abandon(temporary);
  CHECK(NamesIn(root).empty());
  {
    CheckpointDirectory other(root);
    WriteShard(other.BeginSave(1), {}, 0);
  }
  CHECK(NamesIn(root).empty());
}

TEST_CASE("directory: what a dead writer left is removed, what a living one writes is not") {
  const std::string root = NewDirectory();
  CheckpointDirectory living(root);
  const std::string temporary = living.BeginSave(3);
  // What a killed writer leaves: no lock; a lock that nobody holds; a lock alone.
  std::filesystem::create_directory(root + "/" + TemporaryName("step-000000001", RandomToken()));
  const std::string dead = root + "/" + TemporaryName("step-000000002", RandomToken());
  std::filesystem::create_directory(dead);
  std::ofstream(dead + "/shard-0-of-1") << "half";
  std::ofstream(WriterLock::PathOf(dead)) << "";
  std::ofstream(WriterLock::PathOf(root + "/" + TemporaryName("step-000000004", RandomToken()))) << "";
  std::ofstream(root + "/.step-notes.tmp-1") << "mine";
  CheckpointDirectory(root).Prepare();
  const std::string name = std::filesystem::path(temporary).filename();
  CHECK(NamesIn(root) == Names{name, name + ".lock", ".step-notes.tmp-1"});
  SmallCheckpoint of;
  of.layout = SmallLayout(1);
  living.Seal(temporary, ManifestOf(of, {WriteShard(temporary, of, 0)}), "");
  living.Publish(temporary);
  CHECK(NamesIn(root) == Names{".step-notes.tmp-1", "step-000000003"});
}

TEST_CASE("directory: a save that several write has the path that all of them know") {
  const std::string root = NewDirectory();
  CheckpointDirectory first(root), second(root);
  const std::string dead = second.TemporaryPath(3, "run-1");
  std::filesystem::create_directory(dead);
  std::ofstream(dead + "/shard-1-of-2") << "of a dead writer";
  SmallCheckpoint of;
  of.step = 3;
  const std::string temporary = first.BeginSave(3, "run-1");
  CHECK(temporary == dead);
  const auto theirs = WriteShard(second.TemporaryPath(3, "run-1"), of, 1);
  CHECK_THROWS_WITH_AS(second.BeginSave(3, "run-1"), doctest::Contains("another process writes it"), IoError);
  first.Seal(temporary, ManifestOf(of, {WriteShard(temporary, of, 0), theirs}), "");
  CheckpointReader(first.Publish(temporary)).Verify();
}

TEST_CASE("directory: one that cannot be written is the user's to mend, by the key's name") {
  const std::string root = NewDirectory();
  std::ofstream(root + "/file") << "";
  CheckpointDirectory directory(root + "/file/ckpt");
  try {
    directory.Prepare();
    FAIL("it can be written");
  } catch (const UserError& error) {
    const std::string text = error.what();
    CHECK(text.find("checkpoint.dir = " + root + "/file/ckpt: no file can be written there: ") == 0);
    CHECK(text.find("Not a directory (20). Name another directory.") != std::string::npos);
  }
  directory.set_run(root + "/run");  // its checkpoints take the place, if there are any
  CHECK_THROWS_AS(directory.Prepare(), UserError);
  std::filesystem::create_directories(root + "/run/checkpoints");
  CheckpointDirectory there(root + "/run/checkpoints");
  SaveStep(&there, 3);
  directory.Prepare();
  CHECK(directory.path() == there.path());
  CHECK(directory.List().size() == 1);
}

TEST_CASE("directory: one that is not there, and one with other things in it, have no checkpoints") {
  const std::string root = NewDirectory();
  std::vector<std::string> skipped;
  CHECK(CheckpointDirectory(root + "/none").FindNewest(&skipped) == std::nullopt);
  std::ofstream(root + "/step-000000001") << "a file";
  std::filesystem::create_directory(root + "/step-best");
  CHECK(CheckpointDirectory(root).FindNewest(&skipped) == std::nullopt);
  CHECK(skipped == Names{"step-000000001: is a file, not a directory; skipped"});
  std::filesystem::create_directory_symlink("step-000000002", root + "/step-000000002");
  skipped.clear();
  CHECK(CheckpointDirectory(root).FindNewest(&skipped) == std::nullopt);
  REQUIRE(skipped.size() == 2);
  CHECK(skipped[1] == "step-000000002: cannot be looked at: Too many levels of symbolic links (40); skipped");
}

}  // namespace
}  // namespace dtrain::testing
