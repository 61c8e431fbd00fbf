// A disk that fills up during a save: the save fails with a clear error, the older checkpoint stays intact,
// and nothing is left behind.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

constexpr int kWell = 0;
constexpr int kThrew = 76;
constexpr int kNotPossible = 77;

// Runs `body` in its own process; limits and mounts end with it.
int RunInChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(body());
    } catch (const std::exception& error) {
      fmt::print("{}\n", error.what());
      std::fflush(stdout);
      _exit(kThrew);
    }
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Mounts a file system of 4 MiB at `path` that only this process sees. False: the system does not allow it.
bool MountSmall(const std::string& path) {
  const std::string user = fmt::format("0 {} 1", geteuid()), group = fmt::format("0 {} 1", getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user;
  std::ofstream("/proc/self/gid_map") << group;
  return mount("none", path.c_str(), "tmpfs", 0, "size=4m") == 0;
}

// Saves a small checkpoint, then one that is too large. Returns 0, or the number of the broken promise.
int SaveTooMuch(const std::string& root) {
  CheckpointDirectory directory(root);
  directory.Prepare();
  SmallCheckpoint of;
  of.step = 1;
  const std::string older = SaveSmall(&directory, of);
  of.step = 2;
  of.layout = SmallLayout(2, 400000);  // 14 MB with its slots
  const std::string temporary = directory.BeginSave(of.step);
  try {
    for (int ps = 0; ps < 2; ++ps) WriteShard(temporary, of, ps);
    return 1;
  } catch (const IoError& error) {
    const std::string text = error.what();
    if (text.find(temporary + "/shard-") != 0) return 2;
    if (text.find("Free some space, or name another directory: checkpoint.dir.") == text.npos) return 3;
  }
  directory.Abandon(temporary);
  if (NamesIn(root) != std::vector<std::string>{"step-000000001"}) return 4;
  std::vector<std::string> skipped;
  if (directory.FindNewest(&skipped) != older || !skipped.empty()) return 5;
  of = SmallCheckpoint();
  of.step = 3;
  SaveSmall(&directory, of);  // there is room for a small one again
  return directory.List().size() == 2 ? kWell : 6;
}

TEST_CASE("disk full: on a file system of 4 MiB a save fails by path and remedy, and leaves the older one") {
  const std::string root = NewDirectory();
  const int ended = RunInChild([&] { return MountSmall(root) ? SaveTooMuch(root) : kNotPossible; });
  if (ended == kNotPossible) {
    MESSAGE("this system allows no mounts: see the next test");
  } else {
    CHECK(ended == kWell);
  }
}

TEST_CASE("disk full: where a file may not grow beyond 1 MiB a save fails by path and remedy") {
  const std::string root = NewDirectory();
  CHECK(RunInChild([&] {
          signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{1 << 20, 1 << 20};
          if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kNotPossible;
          return SaveTooMuch(root);
        }) == kWell);
}

// The manifest and config.yaml are not written like the shards.
TEST_CASE("disk full: when it is full for the manifest alone, the same") {
  const std::string root = NewDirectory();
  CHECK(RunInChild([&] {
          CheckpointDirectory directory(root);
          const SmallCheckpoint of;
          const std::string temporary = directory.BeginSave(of.step);
          const std::vector<dtrain::WrittenPart> parts = {WriteShard(temporary, of, 0),
                                                          WriteShard(temporary, of, 1)};
          signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{100, 100};
          if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kNotPossible;
          try {
            directory.Seal(temporary, ManifestOf(of, parts), "a: b\n");
            return 1;
          } catch (const IoError& error) {
            if (std::string(error.what()).find(temporary + "/manifest") != 0) return 2;
          }
          directory.Abandon(temporary);
          return NamesIn(root).empty() ? kWell : 3;
        }) == kWell);
}

}  // namespace
}  // namespace dtrain::testing
