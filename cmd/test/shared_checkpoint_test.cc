// checkpoint.writer: ps with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>

#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kForEver = 1000000000;

// Saves to `dir`, or nowhere.
std::string SmallJob(const std::string& dir) {
  return fmt::format("{}checkpoint: {{{}writer: ps}}\n", LinearJob(10),
                     dir.empty() ? "" : fmt::format("dir: {}, ", dir));
}

TEST_CASE("shared checkpoint: a ps that sees another directory than ps 0 ends with exit code 2, by name") {
  const std::string elsewhere = NewDirectory();
  const Cluster cluster(2, 1, SmallJob(NewDirectory()));
  const std::string other = cluster.WriteConfig("other.yaml", SmallJob(elsewhere));
  const auto ps0 = cluster.Start("ps", 0);
  const auto worker = cluster.Start("worker", 0);
  const auto ps1 = cluster.StartWith(other, "ps", 1);
  CHECK(RunToEnd(*ps1) == 2);
  const std::string said = ps1->standard_error();
  CHECK(Contains(said, "checkpoint.dir " + elsewhere + " on "));
  CHECK(Contains(said,
                 "is not the directory that ps 0 sees (checkpoint.writer: ps needs one that all ps share"));
  CHECK(RunToEnd(*ps0) == 2);
  CHECK(Contains(ps0->standard_error(), "is not the directory that ps 0 sees"));
  CHECK(RunToEnd(*worker) == 2);
}

TEST_CASE("shared checkpoint: one ps alone without checkpoint.dir, or with it, ends with 2 when it joins") {
  for (const bool ps0_has : {true, false}) {
    const std::string dir = NewDirectory();
    const Cluster cluster(2, 1, SmallJob(ps0_has ? dir : ""));
    const std::string other = cluster.WriteConfig("other.yaml", SmallJob(ps0_has ? "" : dir));
    const auto ps0 = cluster.Start("ps", 0);
    const auto ps1 = cluster.StartWith(other, "ps", 1);
    CHECK(RunToEnd(*ps1) == 2);
    const std::string said = ps1->standard_error();
    CAPTURE(said);
    CHECK(Contains(said, fmt::format("checkpoint.dir is {} on ps 0 and {} on ps 1",
                                     ps0_has ? "set" : "not set", ps0_has ? "not set" : "set")));
    CHECK(ps0->WaitForLine("refused a task"));
  }
}

// With `more`, of which a checkpoint is some megabytes.
std::string LargeJob(const std::string& dir, int64_t steps, const std::string& more) {
  return fmt::format(
      "model: {{kind: linear, inputs: 2000000}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 1, steps: {}, mode: sync, optimizer: {{kind: adam, learning_rate: 0.001}}}}\n"
      "checkpoint: {{dir: {}, writer: ps, every_steps: 10}}\n"
      "log: {{level: debug}}\n{}",
      steps, dir, more);
}

TEST_CASE(
    "shared checkpoint: a ps that is killed while it writes costs that checkpoint, and the run goes on") {
  std::string crc;
  for (const bool disturbed : {false, true}) {
    const LocalJob job(LargeJob(NewDirectory(), 30, "failure: {worker_lost: wait, restarts: 1}\n"));
    const auto run = job.Start({"--ps", "2"});
    if (disturbed) {
      REQUIRE(run->WaitForLine("ps 1 | writes its part of the checkpoint of global step 10"));
      kill(ChildOf(*run, "ps", 1), SIGKILL);
      REQUIRE(run->WaitForLine("worker 0 | restored "));
    }
    CHECK(RunToEnd(*run) == 0);
    const nlohmann::json result = ReadResult(job.result);
    REQUIRE(result.is_object());
    CHECK(result.at("global_step") == 30);
    if (crc.empty()) crc = result.at("model_crc");
    CHECK(result.at("model_crc") == crc);
    CHECK(Contains(result.at("checkpoint"), "step-000000030"));
  }
}

// The bytes of the part of a save that goes on in `dir`; -1: no save has one.
int64_t PartBytes(const std::string& dir, int ps) {
  std::error_code gone;  // it may get its name at any time
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const auto part = entry.path() / fmt::format("shard-{}-of-2", ps);
    if (entry.path().filename().string()[0] != '.') continue;
    const auto bytes = std::filesystem::file_size(part, gone);
    if (!gone) return static_cast<int64_t>(bytes);
  }
  return -1;
}

// Kills the ps when its part of a save has so many bytes, or that save has ended.
void KillAt(const Process& run, const std::string& dir, int ps, int64_t bytes) {
  const pid_t pid = ChildOf(run, "ps", ps);
  REQUIRE(pid > 0);
  const TimePoint deadline = Clock::now() + kPatience;
  int64_t before = -1;
  while (Clock::now() < deadline) {
    const int64_t now = PartBytes(dir, ps);
    if (now >= bytes || now < before) break;
    before = now;
    std::this_thread::yield();
  }
  kill(pid, SIGKILL);
}

int Inspect(const std::string& path, std::string* said) {
  Process inspect({"inspect", path});
  const int code = RunToEnd(inspect);
  *said = inspect.standard_output() + inspect.standard_error();
  return code;
}

TEST_CASE(
    "shared checkpoint: whenever a ps is killed in its part, all that has a name is good, and nothing "
    "stays") {
  constexpr int kMoments = 5;
  constexpr int64_t kPartBytes = 3 * sizeof(float) * 1000000;
  const std::string dir = NewDirectory();
  const uint32_t seed = std::random_device()();
  fmt::print("seed {}\n", seed);
  std::minstd_rand random(seed);
  for (int moment = 0; moment < kMoments; ++moment) {
    const int ps = static_cast<int>(random() % 2);
    const auto bytes = static_cast<int64_t>(random() % kPartBytes);
    const std::string what = fmt::format("moment {}: ps {} at {} bytes, seed {}", moment, ps, bytes, seed);
    CAPTURE(what);
    const LocalJob job(LargeJob(dir, kForEver, "failure: {ps_lost: fail}\n"));
    const auto run = job.Start({"--ps", "2"});
    REQUIRE(run->WaitForLine("ps 0 | saved "));
    KillAt(*run, dir, ps, bytes);
    CHECK(RunToEnd(*run) == 4);
    std::string said;
    CHECK(Inspect(dir, &said) == 0);
    CAPTURE(said);
    CHECK(Contains(said, "good"));
  }
  const LocalJob job(LargeJob(dir, kForEver, ""));
  const auto run = job.Start({"--ps", "2"});
  REQUIRE(run->WaitForLine("worker 0 | restored "));
  REQUIRE(run->WaitForLine("ps 0 | saved "));
  run->Signal(SIGTERM);
  CHECK(RunToEnd(*run) == 143);
  CHECK(UnfinishedFiles(dir) == "");
  std::string said;
  CHECK(Inspect(dir, &said) == 0);
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
  const LocalJob job(LinearJob(kForEver) +
                     fmt::format("checkpoint: {{dir: {}, writer: ps, every_secs: 0.05}}\n", dir));
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

TEST_CASE("shared checkpoint: a last one that finds the disk of one ps full ends the run with exit code 1") {
  const std::string dir = NewDirectory();
  const LocalJob job(LinearJob(20000) + fmt::format("checkpoint: {{dir: {}, writer: ps}}\n", dir));
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
  std::string inspected;
  CHECK(Inspect(dir, &inspected) == 0);
}

}  // namespace
}  // namespace dtrain::testing
