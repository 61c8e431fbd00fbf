#include "trainer/checkpoint/directory_claim.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

TEST_CASE("claim: who comes second hears who was first, until that one is gone, which leaves nothing") {
  const std::string root = NewDirectory();
  auto first = std::make_unique<DirectoryClaim>();
  CHECK(first->Take(root, "worker 0 (a:1), here, pid 5").empty());
  CHECK(first->Take(root, "worker 0 (a:1), here, pid 5").empty());
  DirectoryClaim second;
  CHECK(second.Take(root, "another run") == "worker 0 (a:1), here, pid 5");
  first.reset();
  CHECK(std::filesystem::is_empty(root));
  CHECK(second.Take(root, "another run").empty());
}

TEST_CASE("claim: one that was killed has let go of it") {
  const std::string root = NewDirectory();
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    DirectoryClaim claim;
    const bool taken = claim.Take(root, "a child").empty();
    if (write(ready[1], taken ? "y" : "n", 1) != 1) _exit(1);
    pause();
  }
  char taken = 0;
  REQUIRE(read(ready[0], &taken, 1) == 1);
  CHECK(taken == 'y');
  CheckpointDirectory directory(root);
  CHECK_THROWS_WITH_AS(directory.Claim("me"),
                       ("checkpoint.dir = " + root +
                        ": in use by a child. Give each run a directory of its own, or end that one first.")
                           .c_str(),
                       UserError);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_NOTHROW(directory.Claim("me"));
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace dtrain::testing
