// A writer that is killed at any moment leaves the older checkpoint as it was, or the new one complete.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/table_test_util.h"

namespace dtrain::testing {
namespace {

// The end of each checkpoint of a leader: saves and prunes. Step 2 exists already.
void SaveAndPrune(const std::string& root) {
  CheckpointDirectory directory(root);
  SmallCheckpoint of;
  of.step = 2;
  of.salt = 3;
  SaveSmall(&directory, of);
  directory.WriteBest("step-000000002");
  directory.Prune(1);
}

// A directory with the checkpoints of steps 1 and 2, with salts 1 and 2.
std::string MakeModel() {
  const std::string root = NewDirectory();
  CheckpointDirectory directory(root);
  SmallCheckpoint of;
  for (of.step = 1, of.salt = 1; of.step <= 2; ++of.step, ++of.salt) SaveSmall(&directory, of);
  return root;
}

// Calls `save` in a process that is killed as it begins or ends its system call number `stop`. False: the
// process ended first.
template <typename Save>
bool KilledAt(int64_t stop, Save&& save) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    save();
    _exit(0);
  }
  int status = 0;
  for (int64_t stops = 0;; ++stops) {
    REQUIRE(waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status)) break;
    if (stops == stop) kill(child, SIGKILL);
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  }
  if (WIFEXITED(status)) REQUIRE(WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

uint64_t SaltOf(const std::string& path) {
  CheckpointReader reader(path);
  std::vector<float> values(15);
  reader.Read("weights/W1", "v", 0, 15, values.data());
  for (const uint64_t salt : {1, 2, 3}) {
    if (values[14] == ValueOf(salt, "weights/W1", 2, 14)) return salt;
  }
  return 0;
}

TEST_CASE(
    "killed: at each system call of a save and of pruning there is a complete checkpoint, and no other") {
  const std::string model = MakeModel();
  uint64_t seen = 2;
  int64_t stop = 1;
  for (bool killed = true; killed; ++stop) {
    CAPTURE(stop);
    const std::string root = NewDirectory();
    std::filesystem::copy(model, root, std::filesystem::copy_options::recursive);
    killed = KilledAt(stop, [&] { SaveAndPrune(root); });
    CheckpointDirectory directory(root);
    std::vector<std::string> skipped;
    const auto newest = directory.FindNewest(&skipped);
    CHECK(skipped.empty());
    REQUIRE(newest);
    const uint64_t salt = SaltOf(*newest);
#ifdef __SANITIZE_ADDRESS__
    CHECK(salt >= 2);  // its allocator makes system calls too, not as many each time
#else
    CHECK(salt >= seen);        // once the new one is there it stays
#endif
    seen = std::max(seen, salt);
    directory.Prepare();
    for (const std::string& name : NamesIn(root)) {
      if (name[0] != '.' && name.find("step-") != name.npos) CheckpointReader(root + "/" + name).Verify();
      CHECK((name == "best" || name.find("step-") == 0 || name.find("replaced-step-") == 0));
    }
    // The next run can save over it.
    SmallCheckpoint of;
    of.step = 2;
    of.slots = {"v", "m"};
    CHECK(SaveSmall(&directory, of) == directory.PathOf("step-000000002"));
    CHECK(directory.FindNewest(&skipped) == directory.PathOf("step-000000002"));
    std::filesystem::remove_all(root);
  }
  CHECK(seen == 3);
  CHECK(stop > 100);
}

TEST_CASE(
    "killed: at each system call of a save of what has changed, and of the next of all, none lacks its "
    "base") {
  const std::string model = NewDirectory();
  SmallTable table(1);
  std::vector<TableRows> states;
  {
    CheckpointDirectory directory(model);
    table.SetEach(0, 5000, 1);
    table.SaveAll(&directory, 1);
    table.Set(70, 2);
    table.SaveDelta(&directory, 2);
    states.push_back(table.rows());
  }
  table.SetEach(3, 9000, 3);
  states.push_back(table.rows());
  size_t seen = 0;
  int64_t stop = 1;
  // Every second stop is the beginning of a call, when the disk is as the call before has left it.
  for (bool killed = true; killed; stop += 2) {
    CAPTURE(stop);
    const std::string root = NewDirectory();
    std::filesystem::copy(model, root, std::filesystem::copy_options::recursive);
    killed = KilledAt(stop, [&] {
      CheckpointDirectory directory(root);
      table.SaveDelta(&directory, 3);
      directory.Prune(1);
      table.SaveAll(&directory, 4);
      directory.Prune(1);
    });
    CheckpointDirectory directory(root);
    for (const std::string& name : directory.Names()) CheckpointReader(directory.PathOf(name)).Verify();
    std::vector<std::string> skipped;
    const auto newest = directory.FindNewest(&skipped);
    REQUIRE(newest);
#ifdef __SANITIZE_ADDRESS__
    const size_t first = 0;  // as above
#else
    const size_t first = seen;  // once the new rows are there they stay
#endif
    const auto state =
        std::find(states.begin() + static_cast<int64_t>(first), states.end(), ReadTable(*newest));
    REQUIRE(state != states.end());
    seen = std::max(seen, static_cast<size_t>(state - states.begin()));
    std::filesystem::remove_all(root);
  }
  CHECK(seen == 1);
  CHECK(stop > 200);
}

}  // namespace
}  // namespace dtrain::testing
