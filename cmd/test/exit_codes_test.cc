// The table of docs/operations.md: an exit code each. 130 and 143 need a checkpoint.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <functional>

#include "cmd/testing/job.h"

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
  WriteFile(directory + "/table.csv", "a,b\n1,2\n3,4\n");
  // The disk is full when the text is printed, which may be more than what is kept until the end.
  const std::vector<std::string> printing[] = {{"check", "--config", directory + "/job.yaml"},
                                               {"init", directory + "/table.csv", "--out", "-"},
                                               {"local", directory + "/job.yaml"},
                                               {"local", directory + "/job.yaml", "--in-process"},
                                               {"--generate", "man"}};
  for (const std::vector<std::string>& words : printing) {
    CAPTURE(words[0]);
    Process full(words, 0, "/dev/full");
    CHECK(RunToEnd(full) == 1);
    CHECK(Contains(full.standard_error(),
                   "dtrain: standard output: No space left on device (28). Free some space"));
  }
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
    CheckEnd(*run, code);
    CHECK(Contains(run->standard_error(), "dtrain: ps 0 was killed by SIGKILL"));
    CHECK(ReadResult(job.result).at("status") == "peer_lost");
  }
}

// Ends `process`, whose --result is `path`, by `end` when nothing can be written there any more.
void CheckCodeWithoutResult(Process& process, const std::string& path, int code,
                            const std::function<void()>& end) {
  REQUIRE(process.WaitForLine("worker 0 | epoch"));
  std::filesystem::create_directory(path);
  end();
  CHECK(RunToEnd(process) == code);
  CAPTURE(process.standard_error());
  CHECK(Contains(process.standard_error(), path + ": cannot be written: Is a directory"));
}

TEST_CASE("exit codes: a result that cannot be written leaves the code of a run that is not done") {
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    const LocalJob job(EndlessJob());
    std::vector<std::string> arguments = {"--set", "checkpoint.dir=" + job.directory + "/ckpt"};
    if (in_process) arguments.push_back("--in-process");
    const auto run = job.Start(arguments);
    CheckCodeWithoutResult(*run, job.result, 143, [&] { run->Signal(SIGTERM); });
  }
  const LocalJob killed(EndlessJob());
  const auto run = killed.Start();
  CheckCodeWithoutResult(*run, killed.result, 4, [&] { kill(ChildOf(*run, "ps", 0), SIGKILL); });
  const LocalJob done(LongJob("steps: 3000"));
  const auto ended = done.Start();
  CheckCodeWithoutResult(*ended, done.result, 1, [] {});
}

}  // namespace
}  // namespace dtrain::testing
