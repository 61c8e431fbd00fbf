#include "trainer/checkpoint/directory_locks.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

TEST_CASE("claim: who comes second hears who was first, until that one is gone, which leaves nothing") {
  const std::string root = NewDirectory();
  auto first = std::make_unique<DirectoryClaim>();
  CHECK(first->Take(root, "worker 0 (a:1), here, pid 5", 7).empty());
  CHECK(first->Take(root, "worker 0 (a:1), here, pid 5", 7).empty());
  DirectoryClaim second;
  CHECK(second.Take(root, "another run", 8) == "worker 0 (a:1), here, pid 5");
  first.reset();
  CHECK(std::filesystem::is_empty(root));
  CHECK(second.Take(root, "another run", 8).empty());
}

TEST_CASE("claim: one that was killed has let go of it") {
  const std::string root = NewDirectory();
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    DirectoryClaim claim;
    const bool taken = claim.Take(root, "a child", 7).empty();
    if (write(ready[1], taken ? "y" : "n", 1) != 1) _exit(1);
    pause();
  }
  char taken = 0;
  REQUIRE(read(ready[0], &taken, 1) == 1);
  CHECK(taken == 'y');
  CheckpointDirectory directory(root);
  CHECK_THROWS_WITH_AS(directory.Claim("me", 8),
                       ("checkpoint.dir = " + root +
                        ": in use by a child. Give each run a directory of its own, or end that one first.")
                           .c_str(),
                       UserError);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_NOTHROW(directory.Claim("me", 8));
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("claim: one that another process has taken meanwhile says by whom, and leaves that one's alone") {
  const std::string root = NewDirectory();
  auto first = std::make_unique<DirectoryClaim>();
  CHECK(first->TakenBy() == "");
  REQUIRE(first->Take(root, "the first", 7).empty());
  CHECK(first->TakenBy() == "");
  std::filesystem::remove(root + "/.in-use");
  CHECK(first->TakenBy() == "nobody: the file .in-use was removed");
  DirectoryClaim second;
  REQUIRE(second.Take(root, "the second", 7).empty());
  CHECK(first->TakenBy() == "the second");
  first.reset();
  CHECK(second.TakenBy() == "");
}

TEST_CASE("claim: a link in the place of its file is refused, and what it leads to stays as it was") {
  const std::string root = NewDirectory(), other = NewDirectory();
  std::ofstream(other + "/precious") << "untouched";
  std::filesystem::create_symlink(other + "/precious", root + "/.in-use");
  CHECK_THROWS_WITH_AS(CheckpointDirectory(root).Claim("me", 7),
                       doctest::Contains((root + "/.in-use: is a symbolic link").c_str()), UserError);
  CHECK(FileContent(other + "/precious") == "untouched");
  std::filesystem::create_directory_symlink(other, root + "/link");  // of the whole directory is the user's
  DirectoryClaim claim;
  CHECK(claim.Take(root + "/link", "me", 7).empty());
  std::filesystem::rename(other + "/.in-use", other + "/moved");
  std::filesystem::create_symlink("moved", other + "/.in-use");
  CHECK(claim.TakenBy() == "nobody: the file .in-use was removed");
  std::filesystem::remove(other + "/.in-use");
}

TEST_CASE("claim: a checkpoint gets no name from a process that has lost the claim") {
  const std::string root = NewDirectory();
  CheckpointDirectory old(root), next(root);
  SmallCheckpoint of;
  old.Claim("the old ps 0", 7);
  CHECK_THROWS_AS(next.Claim("a new ps 0", 7), UserError);
  CHECK_THROWS_AS(next.ClaimAgain("a new ps 0", 7), PeerLost);
  std::filesystem::remove(root + "/.in-use");
  next.Claim("a new ps 0", 7);
  CHECK_THROWS_WITH_AS(
      SaveSmall(&old, of),
      ("checkpoint.dir = " + root +
       ": this process had it for its run, and now it belongs to a new ps 0. Another ps 0 has "
       "taken its place; nothing more is saved here.")
          .c_str(),
      PeerLost);
  CHECK(old.List().empty());
  SaveSmall(&next, of);
  CHECK(next.List().size() == 1);
}

TEST_CASE("claim: one of a process of the same run is taken over though that lives, one of another is not") {
  const std::string root = NewDirectory();
  DirectoryClaim first, next;
  REQUIRE(first.Take(root, "the old ps 0", 7).empty());
  CHECK(next.Take(root, "a stranger", 8, /*replaces=*/true) == "the old ps 0");
  CHECK(next.Take(root, "a new ps 0", 7) == "the old ps 0");
  CHECK(first.TakenBy() == "");
  CHECK(next.Take(root, "a new ps 0", 7, /*replaces=*/true).empty());
  CHECK(first.TakenBy() == "a new ps 0");
  CHECK(next.TakenBy() == "");
}

TEST_CASE(
    "claim: a save of a process whose claim is taken over is gone, and that one touches the next's no more") {
  const std::string root = NewDirectory(), token = "0000000000000007-0-1", other = "0000000000000008-0-1";
  auto old = std::make_unique<CheckpointDirectory>(root);
  old->Claim("the old ps 0", 7);
  const std::string save = old->BeginSave(3, token),
                    alien = CheckpointDirectory(root).TemporaryPath(3, other);
  std::filesystem::create_directory(alien);
  std::ofstream(save + "/shard-0-of-1") << "of the old one";
  CheckpointDirectory next(root);
  next.TakeClaimOver("a new ps 0", 7);
  CHECK_FALSE(std::filesystem::exists(save));
  CHECK(std::filesystem::exists(alien));
  CHECK(next.BeginSave(3, token) == save);
  std::ofstream(save + "/shard-0-of-1") << "of the new one";
  CHECK_THROWS_AS(old->Publish(save), PeerLost);
  old->Abandon(save);
  old.reset();
  CHECK(FileContent(save + "/shard-0-of-1") == "of the new one");
  CHECK(std::filesystem::exists(save + ".lock"));
  CHECK_NOTHROW(next.CheckClaim());
}

}  // namespace
}  // namespace dtrain::testing
