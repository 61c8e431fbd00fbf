// Real processes whose chief is killed, or sleeps while it writes a checkpoint: the run has another one.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// The path of a checkpoint that is being written to `directory`, and is not complete; empty: none now.
std::string Unfinished(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const bool temporary = entry.path().filename().string().rfind(".step-", 0) == 0;
    if (temporary && fs::is_directory(entry.path(), error) && !fs::exists(entry.path() / "manifest")) {
      return entry.path().string();
    }
  }
  return std::string();
}

TEST_CASE("chief: dtrain local without restarts is done when worker 0 is killed, with all results") {
  AdoptOrphans();
  const LocalJob job(DigitsJob("kind: softmax", 20000, 1000, "batch_size: 200, steps: 3000") +
                     "hooks: {log_every_steps: 10}\n"
                     "failure: {detect_s: 2}\n");
  const std::string checkpoints = job.directory + "/ckpt";
  const auto run = job.Start({"--ps", "1", "--workers", "3", "--set", "checkpoint.dir=" + checkpoints});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 0), SIGKILL);
  const int code = RunToEnd(*run);
  const std::string said = run->standard_error();
  CAPTURE(said.substr(said.size() > 5000 ? said.size() - 5000 : 0));
  CHECK(code == 0);
  CHECK(Contains(said, "worker 0 is lost; worker 1 is the chief from now on (term 2)"));
  CHECK(Contains(said, "worker 1 | is the chief from now on (term 2)"));
  const nlohmann::json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 3000);
  CHECK(result.at("test_accuracy").is_number());
  CHECK(result.at("checkpoint") == checkpoints + "/step-000003000");
  CHECK(fs::exists(checkpoints + "/step-000003000/manifest"));
  CHECK(NoneLeft());
}

TEST_CASE("chief: one that sleeps while it writes a checkpoint exits 4, and that gets no name") {
  const std::string directory = NewDirectory();
  const std::string checkpoints = directory + "/ckpt";
  const Cluster cluster(
      1, 2,
      "model: {kind: linear, inputs: 1000000}\n"
      "data: {train: {format: synthetic, name: linear}}\n"
      "train: {batch_size: 1, steps: 1000000000, optimizer: {kind: sgd, learning_rate: 1.0e-9}}\n"
      "hooks: {log_every_steps: 1}\n"
      "checkpoint: {every_secs: 0.5, keep: 1000, dir: " +
          checkpoints +
          "}\n"
          "failure: {detect_s: 2}\n");
  const auto ps = cluster.Start("ps", 0), other = cluster.Start("worker", 1);
  const auto chief = cluster.Start("worker", 0);
  REQUIRE(other->WaitForLine("global step"));
  std::string unfinished;
  const TimePoint deadline = Clock::now() + kPatience;
  while (unfinished.empty() && Clock::now() < deadline) {
    if (Unfinished(checkpoints).empty()) continue;
    chief->Signal(SIGSTOP);
    unfinished = Unfinished(checkpoints);
    if (unfinished.empty()) chief->Signal(SIGCONT);  // it was faster
  }
  REQUIRE_FALSE(unfinished.empty());
  REQUIRE(ps->WaitForLine("worker 0 is lost; worker 1 is the chief from now on (term 2)"));
  REQUIRE(other->WaitForLine("is the chief from now on (term 2)"));
  chief->Signal(SIGCONT);
  CHECK(RunToEnd(*chief) == 4);
  CAPTURE(chief->standard_error());
  CHECK_FALSE(fs::exists(unfinished));
  other->Signal(SIGTERM);
  CHECK(RunToEnd(*other) == 143);
  CHECK(RunToEnd(*ps) == 143);
  // What has a name, now or until a newer one of the same step came, is what ps 0 knows of.
  const auto named = std::count_if(
      fs::directory_iterator(checkpoints), fs::directory_iterator(), [](const fs::directory_entry& entry) {
        return Contains(entry.path().filename().string(), "step-") && fs::exists(entry.path() / "manifest");
      });
  const std::string said = ps->standard_error();
  int64_t told = 0;
  for (size_t at = said.find("| saved "); at != std::string::npos; at = said.find("| saved ", at + 1)) ++told;
  CHECK(named == told);
  fs::remove_all(directory);
}

}  // namespace
}  // namespace dtrain::testing
