// Any moment of a save, a restore and a start: whichever fault point a process is killed at, the run ends as
// one that was left alone, with the same bits.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "base/json.h"
#include "base/testing/faults.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

constexpr int kKilled = 128 + SIGKILL;

std::string Job() {
  return "cluster: {ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\"]}\n" +
         DigitsJob("kind: softmax", 400, 200,
                   "batch_size: 100, mode: sync, optimizer: {kind: momentum, learning_rate: 0.01}") +
         "checkpoint: {every_secs: 0, every_steps: 5}\n"
         "eval: {every_steps: 5, keep_best: true}\n"
         "failure: {detect_s: 2, worker_lost: wait, restarts: 3}\n";
}

// Runs one after the other in one directory: one that begins, one that begins anew, where checkpoints of the
// same steps make room and old ones go, and one that is resumed.
const std::vector<std::vector<std::string>> kRuns = {
    {"--set", "train.steps=10"},
    {"--set", "train.steps=10", "--set", "checkpoint.resume=never", "--set", "checkpoint.keep=1"},
    {"--set", "train.steps=15"}};

// One of them that nothing disturbs.
struct Stage {
  std::vector<std::string> more;
  std::string before;  // a directory as it is when it begins
  std::set<std::string> reached;
  Json result;
};

// Runs a stage in `directory`. A run whose parent is killed is started again, as a user would.
Json Run(const Stage& stage, const std::string& directory, const std::vector<std::string>& environment) {
  const std::string config = directory + "/job.yaml", result = directory + "/result.json";
  WriteFile(config, Job());
  std::vector<std::string> arguments = {
      "local", "--config", config, "--result", result, "--set", "checkpoint.dir=" + directory + "/ckpt"};
  arguments.insert(arguments.end(), stage.more.begin(), stage.more.end());
  int code = kKilled;
  for (int attempt = 0; attempt < 2 && code == kKilled; ++attempt) {
    Process run(arguments, Program{"cmd/dtrain_faults", environment});
    code = RunToEnd(run);
    CAPTURE(run.standard_error());
    CHECK((code == 0 || (code == kKilled && attempt == 0)));
  }
  return ReadResult(result);
}

void CopyAll(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

std::vector<Stage> RunAll() {
  std::vector<Stage> stages;
  const std::string directory = NewDirectory();
  for (const std::vector<std::string>& more : kRuns) {
    Stage stage{more, NewDirectory(), {}, {}};
    CopyAll(directory, stage.before);
    const std::string trace = stage.before + ".trace";
    stage.result = Run(stage, directory, {"DTRAIN_FAULT_TRACE=" + trace});
    std::istringstream lines(FileContent(trace));
    for (std::string line; std::getline(lines, line);) stage.reached.insert(line);
    stages.push_back(std::move(stage));
  }
  return stages;
}

const std::vector<Stage>& Undisturbed() {
  static const std::vector<Stage> stages = RunAll();
  return stages;
}

// The first that reaches the point; null: none.
const Stage* StageThatReaches(const std::string& name) {
  for (const Stage& stage : Undisturbed()) {
    if (stage.reached.count(name) == 1) return &stage;
  }
  return nullptr;
}

TEST_CASE("faults: every point of the list is reached by a run") {
  for (const std::string& name : FaultNames()) {
    CAPTURE(name);
    CHECK(StageThatReaches(name) != nullptr);
  }
}

// When another ps alone has heard the results it ends, and ps 0, which comes back, waits for it in vain.
bool MayEndWithoutResults(const std::string& name) { return name == "end.results.after"; }

TEST_CASE(
    "faults: a process that is killed at any point is started again, and the bits are those of no loss") {
  for (const std::string& name : FaultNames()) {
    if (MayEndWithoutResults(name)) continue;
    CAPTURE(name);
    const Stage* const stage = StageThatReaches(name);
    REQUIRE(stage != nullptr);
    const std::string directory = NewDirectory(), marker = directory + "/met";
    CopyAll(stage->before, directory);
    const Json result = Run(*stage, directory, {fmt::format("DTRAIN_FAULT={}:1:kill:{}", name, marker)});
    CHECK(std::filesystem::exists(marker));
    REQUIRE(result.is_object());
    CHECK(result.at("global_step") == stage->result.at("global_step"));
    CHECK(result.at("model_crc") == stage->result.at("model_crc"));
    std::filesystem::remove_all(directory);
  }
}

TEST_CASE("faults: a process exits at the occurrence that is named") {
  const Cluster cluster(1, 1, LinearJob(10));
  const std::string result = cluster.directory() + "/result.json";
  // The first is the proof that the result can be written.
  const Program exits{"cmd/dtrain_faults", {"DTRAIN_FAULT=file.rename.after:2:exit"}};
  Process ps({"--config", cluster.config(), "--role", "ps", "--index", "0", "--result", result}, exits);
  const auto worker = cluster.Start("worker", 0);
  CHECK(RunToEnd(ps) == 1);
  CHECK(RunToEnd(*worker) == 0);
  CHECK(ReadResult(result).at("status") == "done");
}

TEST_CASE("faults: a point that does not exist is refused") {
  const std::string result = NewDirectory() + "/result.json";
  Process run({"local", "--config", "configs/quickstart_digits.yaml", "--result", result},
              Program{"cmd/dtrain_faults", {"DTRAIN_FAULT=nothing.before:1:kill"}});
  CHECK(RunToEnd(run) == 128 + SIGABRT);
  CHECK(Contains(run.standard_error(), "faults: DTRAIN_FAULT=nothing.before:1:kill is not"));
}

}  // namespace
}  // namespace dtrain::testing
