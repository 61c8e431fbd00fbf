// The table of docs/operations.md: an exit code each. 130 and 143 need a checkpoint.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "cmd/testing/local_job.h"

namespace dtrain::testing {
namespace {

// The command's exit code, and that of one task; both leave this status.
void CheckCode(int code, const std::string& status, const std::string& job_text,
               const std::vector<std::string>& more = {}) {
  const LocalJob job(job_text);
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    std::vector<std::string> arguments = more;
    if (in_process) arguments.push_back("--in-process");
    const auto run = job.Start(arguments);
    CHECK(RunToEnd(*run) == code);
    CAPTURE(run->standard_error());
    CHECK(ReadResult(job.result).at("status") == status);
  }
}

TEST_CASE("exit codes: 0 done") { CheckCode(0, "done", LinearJob(20)); }

TEST_CASE("exit codes: 1 local I/O") {
  const std::string directory = NewDirectory();
  WriteFile(directory + "/job.yaml", LinearJob(20));
  // The disk is full when the text is printed.
  Process full({"check", "--config", directory + "/job.yaml"}, 0, "/dev/full");
  CHECK(RunToEnd(full) == 1);
}

TEST_CASE("exit codes: 2 usage, config and data") {
  Process usage({"local", "--nonsense"});
  CHECK(RunToEnd(usage) == 2);
  CheckCode(2, "failed", LinearJob(20), {"--set", "train.batch_size=0"});
  CheckCode(2, "failed",
            "model: {kind: softmax, inputs: 4, outputs: 2}\n"
            "data: {train: {format: idx, images: gone-images, labels: gone-labels}}\n"
            "train: {steps: 10}\n"
            "failure: {startup_timeout_s: 5}\n");
}

TEST_CASE("exit codes: 3 diverged") {
  CheckCode(3, "diverged", LinearJob(1000), {"--set", "train.optimizer.learning_rate=1e30"});
}

TEST_CASE("exit codes: 4 a peer was lost, or failure.peer_lost_exit") {
  for (const int code : {4, 138}) {
    const Cluster cluster(
        1, 1, LinearJob(20) + fmt::format("failure: {{startup_timeout_s: 0.2, peer_lost_exit: {}}}\n", code));
    const std::string result = cluster.directory() + "/result.json";
    const auto worker = cluster.Start("worker", 0, {"--result", result});
    CHECK(RunToEnd(*worker) == code);
    CHECK(ReadResult(result).at("status") == "peer_lost");
  }
}

TEST_CASE("exit codes: 4 of dtrain local, or failure.peer_lost_exit") {
  for (const int code : {4, 138}) {
    const LocalJob job(LinearJob(1000000000000) + fmt::format("failure: {{peer_lost_exit: {}}}\n", code));
    const auto run = job.Start();
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    kill(ChildOf(*run, "ps", 0), SIGKILL);
    CHECK(RunToEnd(*run) == code);
    CHECK(ReadResult(job.result).at("status") == "peer_lost");
  }
}

}  // namespace
}  // namespace dtrain::testing
