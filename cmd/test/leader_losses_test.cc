// Any moment of ps 0: whichever fault point it is killed at, ps 1 has what it knew (failure.replicas), and
// the run ends as one that was left alone: the same result, files and exit codes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/running_job.h"
#include "cmd/testing/two_at_once.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

const char* const kOnly = "DTRAIN_FAULT_ONLY=--role ps --index 0";
const char* const kLeadsOn = "this process leads the run on";

// What the run does: it keeps the best weights, and patience ends it before its last step. At the end neither
// are the weights the best nor is a checkpoint just due.
std::string Sections(const std::string& directory) {
  return DigitsJob("kind: softmax", 400, 100,
                   "batch_size: 50, mode: sync, steps: 100, "
                   "optimizer: {kind: momentum, learning_rate: 0.8}") +
         fmt::format("checkpoint: {{dir: \"{}/checkpoints\", every_secs: 0, every_steps: 7}}\n", directory) +
         "eval: {every_steps: 5, keep_best: true, patience: 1}\n"
         "failure: {replicas: 1, worker_lost: wait, detect_s: 60, wait_s: 120, restarts: 6}\n"
         "log: {level: debug}\n";
}

// What a run leaves.
struct Left {
  int exit_code = -1;
  Json result;
  std::set<std::string> checkpoints;
  std::string best, log;
};

Left Run(const std::string& directory, const std::vector<std::string>& environment) {
  RunningJob job(
      {3, 2, false, directory, Sections(directory), {}, false, {"cmd/dtrain_faults", environment}});
  job.Start();
  Left left;
  const bool ended = job.WaitForEnd();
  left.log = job.log();
  if (!ended) return left;
  left.exit_code = job.exit_code();
  left.result = ReadResult(job.result());
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory + "/checkpoints", none)) {
    left.checkpoints.insert(entry.path().filename().string());
  }
  if (left.checkpoints.count("best") == 1) left.best = FileContent(directory + "/checkpoints/best");
  return left;
}

// The figures of a result that a loss does not change, one per line. A run that goes back to a checkpoint, or
// to its beginning, may have cut an evaluation short, and says so, and counts the steps that it takes again.
std::string Figures(const Json& result, bool goes_back) {
  std::string text;
  for (const auto& [key, value] : result.items()) {
    static const std::set<std::string> others = {
        "wall_s",      "train_s",   "steps_per_s", "examples_per_s", "bytes_sent", "bytes_received",
        "bytes_saved", "startup_s", "logs",        "restarts",       "warnings",   "run_id",
        "start_time",  "end_time",  "config",      "config_digest",  "checkpoint", "workers"};
    if (others.count(key) == 1 || (goes_back && key == "deterministic")) continue;
    text += fmt::format("{}: {}\n", key, value.dump());
  }
  if (!result.at("workers").is_array()) return text + "no workers\n";
  for (const Json& worker : result.at("workers")) {
    if (!goes_back) text += fmt::format("{} steps, ", worker.at("steps").dump());
    text += fmt::format("{} rows\n", worker.at("rows").dump());
  }
  return text + fs::path(result.at("checkpoint").get<std::string>()).filename().string();
}

std::string Names(const Left& left, bool but_hidden) {
  std::string names;
  for (const std::string& name : left.checkpoints) {
    if (!but_hidden || name[0] != '.') names += name + " ";
  }
  return names;
}

// The run that nothing disturbs, and how often ps 0 reaches each point in it.
struct Undisturbed {
  Left left;
  std::map<std::string, int> reached;

  Undisturbed() {
    const std::string directory = NewDirectory(), trace = directory + "/trace";
    left = Run(directory, {"DTRAIN_FAULT_TRACE=" + trace, kOnly});
    std::istringstream lines(FileContent(trace));
    for (std::string line; std::getline(lines, line);) ++reached[line];
    fs::remove_all(directory);
  }
};

// What is wrong with the end of a run whose ps 0 is killed when it reaches a point; empty: nothing.
std::string KilledAt(const std::string& name, int count, const Left& expected) {
  const std::string directory = NewDirectory(), marker = directory + "/met";
  const Left left = Run(directory, {fmt::format("DTRAIN_FAULT={}:{}:kill:{}", name, count, marker), kOnly});
  std::string wrong;
  const auto same = [&](const std::string& what, const std::string& is, const std::string& should_be) {
    if (is != should_be) wrong += fmt::format("{}:\n{}\nnot:\n{}\n", what, is, should_be);
  };
  if (left.exit_code != 0) {
    wrong = fmt::format("exit code {}\n", left.exit_code);
  } else if (!fs::exists(marker)) {
    wrong = "is never reached\n";
  } else {
    const bool goes_back = !Contains(left.log, kLeadsOn);  // before the replica counts
    same("result", Figures(left.result, goes_back), Figures(expected.result, goes_back));
    same("best", left.best, expected.best);
    // Where nobody starts ps 0 again, the next run removes what it has left.
    const bool is_over = Contains(left.log, "the run was done by then");
    same("checkpoints", Names(left, is_over), Names(expected, is_over));
  }
  fs::remove_all(directory);
  return wrong.empty() ? "" : wrong + left.log;
}

TEST_CASE("leader: ps 0 is killed at any point, and the run ends as one that was left alone") {
  const Undisturbed undisturbed;
  CAPTURE(undisturbed.left.log);
  REQUIRE(undisturbed.left.exit_code == 0);
  std::vector<std::pair<std::string, int>> moments;
  for (const auto& [name, times] : undisturbed.reached) moments.push_back({name, (times + 1) / 2});
  // In the last save, and behind the last evaluation. How often results are asked for depends on timing.
  for (const char* const scope : {"manifest.rename", "checkpoint.rename", "save.order", "evaluate.snapshot",
                                  "evaluate.taken", "end.done"}) {
    const std::string name = fmt::format("{}.before", scope);
    moments.push_back({name, undisturbed.reached.at(name)});
  }
  for (const char* const scope :
       {"start.welcome", "start.fill", "start.begin", "leader.grant", "leader.round", "leader.patience",
        "replica.turn", "best.rename", "end.evaluate"}) {
    CAPTURE(scope);
    CHECK(undisturbed.reached.count(fmt::format("{}.after", scope)) == 1);
  }
  TwoAtOnce(
      moments.size(),
      [&](size_t i) { return KilledAt(moments[i].first, moments[i].second, undisturbed.left); },
      [&](size_t i, const std::string& wrong) {
        CAPTURE(moments[i].first);
        CAPTURE(moments[i].second);
        CHECK(wrong == "");
      });
}

}  // namespace
}  // namespace dtrain::testing
