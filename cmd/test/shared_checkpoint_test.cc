// Checkpoints that several ps write, with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kForEver = 1000000000;

// With `more`, of which a checkpoint is some megabytes.
std::string LargeJob(const std::string& dir, int64_t steps, const std::string& more) {
  return fmt::format(
      "model: {{kind: linear, inputs: 2000000}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 1, steps: {}, mode: sync, optimizer: {{kind: adam, learning_rate: 0.001}}}}\n"
      "checkpoint: {{dir: {}, every_steps: 10}}\n"
      "log: {{level: debug}}\n{}",
      steps, dir, more);
}

// The largest global step that has a checkpoint; -1: none has.
int64_t NewestStep(const std::string& dir) {
  int64_t newest = -1;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (name.find("step-") == 0) newest = std::max<int64_t>(newest, std::stoll(name.substr(5)));
  }
  return newest;
}

// The directory of a save that has begun a shard file in `dir`, and has no manifest; empty: none now.
std::string PartOf(const std::string& dir) {
  std::error_code gone;  // it may get its name at any time
  for (const auto& entry : std::filesystem::directory_iterator(dir, gone)) {
    const auto path = entry.path();
    if (path.filename().string()[0] != '.' || !std::filesystem::exists(path / "shard-0-of-1", gone)) continue;
    if (!std::filesystem::exists(path / "manifest", gone)) return path.string();
  }
  return "";
}

TEST_CASE(
    "shared checkpoint: without a shared disk a ps is killed in a save, and another number of ps goes on") {
  const std::string more = "failure: {worker_lost: wait, detect_s: 2}\n";
  const std::string dir = NewDirectory(), elsewhere = NewDirectory();
  const Cluster first(2, 1, LargeJob(dir, 15, more));
  const std::string own = first.WriteConfig("own.yaml", LargeJob(elsewhere, 15, more));
  const auto ps0 = first.Start("ps", 0), worker = first.Start("worker", 0);
  auto ps1 = first.StartWith(own, "ps", 1);
  REQUIRE(ps1->WaitForLine("sends its part of checkpoints to ps 0: " + elsewhere));
  REQUIRE(ps0->WaitForLine("writes the part of ps 1 of the checkpoint of global step 10"));
  ps1->Signal(SIGKILL);
  RunToEnd(*ps1);
  ps1 = first.StartWith(own, "ps", 1);
  REQUIRE(ps0->WaitForLine("restored "));
  CheckEnds(std::vector<Process*>{ps0.get(), ps1.get(), worker.get()});
  CHECK(UnfinishedFiles(dir) == "");
  CHECK(std::filesystem::is_empty(elsewhere));

  const Cluster second(3, 1, LargeJob(dir, 25, more));
  const std::string none = second.WriteConfig("none.yaml", LargeJob("null", 25, more));
  std::vector<std::unique_ptr<Process>> tasks;
  const std::string to = second.directory() + "/result.json";
  tasks.push_back(second.Start("ps", 0, {"--result", to}));
  for (const int ps : {1, 2}) tasks.push_back(second.StartWith(none, "ps", ps));
  tasks.push_back(second.Start("worker", 0));
  CheckEnds(tasks);
  const Json result = ReadResult(to);
  REQUIRE(result.is_object());
  CHECK(result.at("global_step") == 25);
  CHECK(Contains(result.at("checkpoint"), dir + "/step-000000025"));
  // A run on 1 ps that nothing disturbs.
  const LocalJob whole(LargeJob("null", 25, more));
  CHECK(result.at("model_crc") == RunLocal(whole.config, {"--ps", "1", "--workers", "1"}).at("model_crc"));
}

TEST_CASE(
    "shared checkpoint: a ps 0 that sleeps in a save while another takes its directory exits 4, and saves "
    "nothing") {
  const std::string dir = NewDirectory();
  const std::string forever = LargeJob(dir, kForEver, "failure: {detect_s: 2}\n");
  const Cluster first(1, 1, forever);
  const auto old = first.Start("ps", 0), worker = first.Start("worker", 0);
  REQUIRE(old->WaitForLine("| saved "));
  const TimePoint deadline = Clock::now() + kPatience;
  std::string unfinished;
  while (unfinished.empty() && Clock::now() < deadline) {
    if (PartOf(dir).empty()) continue;
    old->Signal(SIGSTOP);
    unfinished = PartOf(dir);
    if (unfinished.empty()) old->Signal(SIGCONT);  // it was faster
  }
  REQUIRE_FALSE(unfinished.empty());
  std::filesystem::remove(dir + "/.in-use");  // as where the lock of a host that is gone has lapsed
  const int64_t before = NewestStep(dir);
  const Cluster second(1, 1, LargeJob(dir, before + 15, ""));
  const auto next = second.Start("ps", 0), other = second.Start("worker", 0);
  REQUIRE(next->WaitForLine("restored "));
  old->Signal(SIGCONT);
  CheckEnd(*old, 4);
  CHECK(Contains(old->standard_error(), "Another ps 0 has taken its place; nothing more is saved here."));
  CheckEnd(*worker, 4);
  CheckEnd(*next);
  CheckEnd(*other);
  CHECK_FALSE(std::filesystem::exists(unfinished));
  CHECK(NewestStep(dir) == before + 15);
  CHECK(UnfinishedFiles(dir) == "");
  CHECK(Run({"inspect", dir}).code == 0);
}

// Waits for a save that fails, and checks what is said of it; the global step that it was of.
int64_t FailedStep(Process& run, const std::string& dir) {
  const std::string of = "the checkpoint of global step ", told = "could not be written: ";
  REQUIRE(run.WaitForLine(told));
  const std::string said = run.standard_error();
  const size_t begin = said.rfind(of, said.find(told));
  const std::string line = said.substr(begin, said.find('\n', begin) - begin);
  CAPTURE(line);
  CHECK(Contains(line, "ps 1 ("));
  CHECK(Contains(line, dir + "/.step-"));
  CHECK(Contains(line, "/shard-1-of-2: cannot be written: File too large (27). Free some space"));
  return std::stoll(line.substr(of.size()));
}

TEST_CASE(
    "shared checkpoint: where the disk of a ps is full that is told by file and cause, and the run goes on") {
  const std::string dir = NewDirectory();
  const LocalJob job(LinearJob(kForEver) + fmt::format("checkpoint: {{dir: {}, every_secs: 0.05}}\n", dir));
  const auto run = job.Start({"--ps", "2"});
  REQUIRE(run->WaitForLine("ps 0 | saved "));
  const pid_t full = ChildOf(*run, "ps", 1);
  FillDiskOf(full);
  const int64_t failed = FailedStep(*run, dir);
  GiveRoomTo(full);
  const TimePoint deadline = Clock::now() + kPatience;
  while (NewestStep(dir) <= failed && Clock::now() < deadline) std::this_thread::yield();
  CHECK(NewestStep(dir) > failed);
  FillDiskOf(full);
  run->Signal(SIGTERM);
  CHECK(RunToEnd(*run) == 1);
  CHECK(Contains(run->standard_error(), "nothing was saved"));
  CHECK(UnfinishedFiles(dir) == "");
}

TEST_CASE(
    "shared checkpoint: where the disk of ps 0 is full, which another's part goes to, the run goes on") {
  const std::string dir = NewDirectory();
  const std::string job = LinearJob(kForEver) + "checkpoint: {every_secs: 0.05, dir: ";
  const Cluster cluster(2, 1, job + dir + "}\n");
  const std::string none = cluster.WriteConfig("none.yaml", job + "null}\n");
  const auto ps0 = cluster.Start("ps", 0), ps1 = cluster.StartWith(none, "ps", 1);
  const auto worker = cluster.Start("worker", 0);
  REQUIRE(ps0->WaitForLine("| saved "));
  FillDiskOf(ps0->pid());
  REQUIRE(ps0->WaitForLine("could not be written: "));
  CHECK(Contains(ps0->standard_error(), "-of-2: cannot be written: File too large (27). Free some space"));
  const int64_t before = NewestStep(dir);
  GiveRoomTo(ps0->pid());
  const TimePoint deadline = Clock::now() + kPatience;
  while (NewestStep(dir) <= before && Clock::now() < deadline) std::this_thread::yield();
  CHECK(NewestStep(dir) > before);
  ps0->Signal(SIGTERM);
  for (Process* task : {ps0.get(), ps1.get(), worker.get()}) CHECK(RunToEnd(*task) == 143);
  CHECK(UnfinishedFiles(dir) == "");
}

TEST_CASE("shared checkpoint: a last one that finds the disk of one ps full ends the run with exit code 1") {
  const std::string dir = NewDirectory();
  const LocalJob job(LinearJob(20000) + fmt::format("checkpoint: {{dir: {}}}\n", dir));
  const auto run = job.Start({"--ps", "2"});
  REQUIRE(run->WaitForLine("ps 0 | saved "));
  FillDiskOf(ChildOf(*run, "ps", 1));
  CHECK(RunToEnd(*run) == 1);
  const std::string said = run->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "the last checkpoint could not be written: ps 1 ("));
  CHECK(Contains(said, "File too large"));
  CHECK(ReadResult(job.result).at("status") == "failed");
  CHECK(UnfinishedFiles(dir) == "");
  CHECK(Run({"inspect", dir}).code == 0);
}

}  // namespace
}  // namespace dtrain::testing
