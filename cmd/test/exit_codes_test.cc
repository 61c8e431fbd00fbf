// The table of docs/operations.md: an exit code each. 130 and 143 need a checkpoint.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

// A job on 1,000 rows in windows of 100. Row 900 cannot be read until Mend(). It asks for nothing
// else.
struct BadRowJob {
  std::string directory = NewDirectory();
  std::string table = directory + "/table.csv";

  BadRowJob() { Write("oops"); }
  void Mend() const { Write("0.5"); }
  // `source`: before the path of the table.
  std::string Text(const std::string& source) const {
    return fmt::format(
        "model: {{kind: logistic, inputs: 1}}\n"
        "data: {{train: {{format: csv, path: \"{}{}\", label: y}}, cache: none, shuffle_rows: 100}}\n"
        "train: {{batch_size: 10, epochs: 1, mode: sync}}\n"
        "checkpoint: {{dir: {}/ckpt}}\n"
        "failure: {{restarts: 2, detect_s: {}}}\n",
        source, table, directory, kDetect.count());
  }
  void Write(const std::string& bad) const {
    std::string rows = "y,x\n";
    for (int row = 1; row <= 1000; ++row) {
      rows += fmt::format("{},{}\n", row % 2, row == 900 ? bad : fmt::format("{}", row % 7));
    }
    WriteFile(table, rows);
  }
};

// Before the path of a table whose rows are read while the run trains: a pipe, and the file itself.
constexpr const char* kReadInTraining[] = {"exec:cat ", ""};

TEST_CASE(
    "exit codes: 2 for a bad row that is met in training; the run is saved, and goes on when it is mended") {
  for (const char* source : kReadInTraining) {
    for (const char* in : {"", "--in-process"}) {
      CAPTURE(source);
      CAPTURE(in);
      const BadRowJob rows;
      const LocalJob job(rows.Text(source));
      std::vector<std::string> arguments = {"--workers", "3", "--ps", "2", "--run", job.directory + "/run"};
      if (*in != 0) arguments.push_back(in);
      const auto run = job.Start(arguments);
      CHECK(RunToEnd(*run) == 2);
      const std::string said = run->standard_error();
      CAPTURE(said);
      CHECK(Contains(said,
                     ":901:3: x = oops; must be a number. Correct it, or remove the "
                     "row. The run stopped at global step "));
      CHECK(Contains(said, "; the newest checkpoint is " + rows.directory + "/ckpt/step-0000000"));
      CHECK(Contains(said, ". Start it again to go on from there.\n"));
      CHECK(Contains(said, "/run; to go on: "));
      CHECK_FALSE(Contains(said, "started again"));
      const Json result = ReadResult(job.result);
      CHECK(result.at("status") == "failed");
      CHECK(Contains(result.at("error").get<std::string>(), ":901:3: x = oops"));
      rows.Mend();
      const auto again = job.Start(arguments);
      CheckEnd(*again);
      CHECK(Contains(again->standard_error(), "restored " + rows.directory + "/ckpt/step-0000000"));
    }
  }
}

TEST_CASE("exit codes: 2 for all tasks by hand where one meets a bad row in training") {
  for (const char* source : kReadInTraining) {
    CAPTURE(source);
    const BadRowJob rows;
    const Cluster cluster(2, 2, rows.Text(source));
    std::vector<std::unique_ptr<Process>> tasks;
    for (const char* role : {"ps", "worker"}) {
      for (const int index : {0, 1}) tasks.push_back(cluster.Start(role, index));
    }
    for (const auto& task : tasks) {
      CHECK(RunToEnd(*task) == 2);
      const std::string said = task->standard_error();
      CAPTURE(said);
      CHECK(Contains(said, ":901:3: x = oops; must be a number."));
      CHECK(Contains(said, "; the newest checkpoint is " + rows.directory + "/ckpt/step-0000000"));
    }
  }
}

TEST_CASE(
    "exit codes: 2 for more bad rows than data.bad_rows_limit, which counts each once, over files and "
    "epochs") {
  for (const char* cache : {"memory", "none", "file"}) {
    CAPTURE(cache);
    const std::string directory = NewDirectory();
    for (const char* name : {"part-1.csv", "part-2.csv"}) {
      WriteFile(directory + "/" + name, "y,x\n0,1\n1,oops\n0,2\n1,oops\n1,3\n");
    }
    const LocalJob job(fmt::format(
        "model: {{kind: logistic, inputs: 1}}\n"
        "data: {{train: {{format: csv, path: {}/part-*.csv, label: y}}, cache: {}, bad_rows: skip}}\n"
        "train: {{batch_size: 2, epochs: 3}}\n",
        directory, cache));
    for (const int limit : {4, 3}) {
      std::vector<std::string> arguments = {"--workers", "2", "--set",
                                            fmt::format("data.bad_rows_limit={}", limit)};
      if (cache == std::string("file")) {
        const std::string in = fmt::format("data.cache_dir={}/cache-{}", directory, limit);
        arguments.insert(arguments.end(), {"--set", in});
      }
      const auto run = job.Start(arguments);
      CHECK(RunToEnd(*run) == (limit == 4 ? 0 : 2));
      const std::string fault =
          "part-2.csv:5:3: x = oops; must be a number. Correct it, or remove "
          "the row. It is bad row 4, and data.bad_rows_limit = 3.";
      CHECK(Contains(run->standard_error(), fault) == (limit == 3));
    }
  }
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
  const LocalJob done(LongJob("steps: 1000"));
  const auto ended = done.Start();
  CheckCodeWithoutResult(*ended, done.result, 1, [] {});
}

}  // namespace
}  // namespace dtrain::testing
