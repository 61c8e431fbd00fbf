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
#include "cmd/testing/two_at_once.h"

namespace dtrain::testing {
namespace {

constexpr int kKilled = 128 + SIGKILL;

std::string Job() {
  return DigitsJob("kind: softmax", 400, 200,
                   "batch_size: 100, mode: sync, optimizer: {kind: momentum, learning_rate: 0.01}") +
         "checkpoint: {every_secs: 0, every_steps: 5}\n"
         "eval: {every_steps: 5, keep_best: true}\n"
         "failure: {detect_s: 2, worker_lost: wait, restarts: 3}\n";
}

// A run that nothing disturbs.
struct Stage {
  std::vector<std::string> more;
  bool streamed = false;  // ps 1 does not see the directory: its part goes over the network
  std::string before{};   // a directory as it is when the run begins
  std::set<std::string> reached{};
  Json result{};
  std::string job = Job();
};

// Those of one row run one after the other in one directory: one that begins, one that begins again, where
// checkpoints of the same steps make room and old ones go, and one that is resumed.
const std::vector<std::vector<Stage>> kRuns = {
    {{{"--set", "train.steps=10"}},
     {{"--set", "train.steps=10", "--set", "checkpoint.resume=never", "--set", "checkpoint.keep=1"}},
     {{"--set", "train.steps=15"}}},
    {{{"--set", "train.steps=10"}, true}, {{"--set", "train.steps=15"}, true}}};

// Whether the process was killed; otherwise it has to end with success.
bool Killed(Process& process) {
  const int code = process.exit_code();
  CAPTURE(process.standard_error());
  CHECK((code == 0 || code == kKilled));
  return code == kKilled;
}

// Runs `dtrain local`. One that is killed is started again, as a user would.
void RunLocally(const std::vector<std::string>& arguments, const Program& program) {
  bool killed = true;
  for (int attempt = 0; attempt < 2 && killed; ++attempt) {
    Process run(arguments, program);
    RunToEnd(run);
    killed = Killed(run);
  }
  CHECK_FALSE(killed);
}

// Runs each task by itself, with a ps 1 that has no directory. One that is killed is started again.
void RunTasks(const std::string& job, const std::vector<std::string>& arguments, const Program& program,
              const std::string& result) {
  const Cluster cluster(2, 2, job);
  const std::vector<std::vector<std::string>> tasks = {
      {"ps", "0", "--result", result},
      {"ps", "1", "--set", "checkpoint.dir=" + cluster.directory() + "/of-no-one"},
      {"worker", "0"},
      {"worker", "1"}};
  const auto start = [&](const std::vector<std::string>& task) {
    std::vector<std::string> words = {"--config", cluster.config(), "--role", task[0], "--index", task[1]};
    words.insert(words.end(), arguments.begin(), arguments.end());
    words.insert(words.end(), task.begin() + 2, task.end());
    return std::make_unique<Process>(words, program);
  };
  std::vector<std::unique_ptr<Process>> processes;
  for (const auto& task : tasks) processes.push_back(start(task));
  const TimePoint deadline = Clock::now() + kPatience;
  int over = 0, starts = 0;
  for (size_t i = 0; over < 4 && Clock::now() < deadline; i = (i + 1) % tasks.size()) {
    if (processes[i] == nullptr || !processes[i]->WaitForEnd(milliseconds(5))) continue;
    const bool again = Killed(*processes[i]) && ++starts == 1;
    processes[i] = again ? start(tasks[i]) : nullptr;
    over += again ? 0 : 1;
  }
  std::string open;
  for (const auto& process : processes) {
    if (process != nullptr) open += process->standard_error() + "\n";
  }
  CAPTURE(open);
  CHECK(over == 4);
}

Json Run(const Stage& stage, const std::string& directory, const std::vector<std::string>& environment) {
  const std::string config = directory + "/job.yaml", result = directory + "/result.json";
  const Program program{"cmd/dtrain_faults", environment};
  std::vector<std::string> arguments = {"--set", "checkpoint.dir=" + directory + "/ckpt"};
  arguments.insert(arguments.end(), stage.more.begin(), stage.more.end());
  if (stage.streamed) {
    RunTasks(stage.job, arguments, program, result);
  } else {
    WriteFile(config, "cluster: {ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\"]}\n" + stage.job);
    const std::vector<std::string> local = {"local", "--config", config, "--result", result};
    arguments.insert(arguments.begin(), local.begin(), local.end());
    RunLocally(arguments, program);
  }
  return ReadResult(result);
}

void CopyAll(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

// Runs a stage in a directory that nothing disturbs.
Stage RunTraced(Stage stage, const std::string& directory) {
  stage.before = NewDirectory();
  CopyAll(directory, stage.before);
  const std::string trace = stage.before + ".trace";
  stage.result = Run(stage, directory, {"DTRAIN_FAULT_TRACE=" + trace});
  std::istringstream lines(FileContent(trace));
  for (std::string line; std::getline(lines, line);) stage.reached.insert(line);
  return stage;
}

std::vector<Stage> RunAll() {
  std::vector<Stage> stages;
  for (const std::vector<Stage>& row : kRuns) {
    const std::string directory = NewDirectory();
    for (const Stage& stage : row) stages.push_back(RunTraced(stage, directory));
  }
  return stages;
}

const std::vector<Stage>& Undisturbed() {
  static const std::vector<Stage> stages = RunAll();
  return stages;
}

// The first run that reaches the point; null: none.
const Stage* StageThatReaches(const std::string& name, bool streamed) {
  for (const Stage& stage : Undisturbed()) {
    if (stage.streamed == streamed && stage.reached.count(name) == 1) return &stage;
  }
  return nullptr;
}

TEST_CASE("faults: every point of the list is reached by a run") {
  for (const std::string& name : FaultNames()) {
    CAPTURE(name);
    CHECK((StageThatReaches(name, false) || StageThatReaches(name, true)));
  }
}

// A process is killed when it reaches a point so often.
struct Kill {
  std::string name;
  const Stage* stage;
  int occurrence = 1;
};

// What comes of that.
struct Outcome {
  bool killed;
  Json result;
};

Outcome RunWith(const Kill& kill) {
  const std::string directory = NewDirectory(), marker = directory + "/met";
  CopyAll(kill.stage->before, directory);
  const std::string fault = fmt::format("DTRAIN_FAULT={}:{}:kill:{}", kill.name, kill.occurrence, marker);
  const Json result = Run(*kill.stage, directory, {fault});
  const bool killed = std::filesystem::exists(marker);
  std::filesystem::remove_all(directory);
  return {killed, result};
}

void CheckEach(const std::vector<Kill>& kills) {
  TwoAtOnce(
      kills.size(), [&](size_t i) { return RunWith(kills[i]); },
      [&](size_t i, const Outcome& outcome) {
        const Kill& kill = kills[i];
        CAPTURE(kill.name);
        CAPTURE(kill.occurrence);
        CAPTURE(kill.stage->streamed);
        CHECK(outcome.killed);
        CHECK(outcome.result.is_object());
        if (!outcome.result.is_object()) return;
        for (const char* const key : {"global_step", "model_crc"}) {
          CHECK(outcome.result.at(key) == kill.stage->result.at(key));
        }
      });
}

TEST_CASE(
    "faults: a process that is killed at any point is started again, and the bits are those of no loss") {
  std::vector<Kill> kills;
  for (const std::string& name : FaultNames()) {
    if (const Stage* const stage = StageThatReaches(name, false)) kills.push_back({name, stage});
  }
  CheckEach(kills);
}

// Both workers and ps 1 are told.
TEST_CASE("faults: a ps 0 that is killed when some have heard the results leaves a run that is done") {
  const std::string name = "end.results.after";
  CheckEach({{name, StageThatReaches(name, false), 2}, {name, StageThatReaches(name, false), 3}});
}

// Not at the end: nobody starts a task again there that the others do not need.
TEST_CASE("faults: the same where the part of a ps goes over the network") {
  std::vector<Kill> kills;
  for (const std::string& name : FaultNames()) {
    const std::string of = name.substr(0, name.find('.'));
    if (of == "end" || of == "file" || of == "best" || of == "replaced") continue;
    if (const Stage* const stage = StageThatReaches(name, true)) kills.push_back({name, stage});
  }
  CheckEach(kills);
}

// All rows are saved at steps 0 and 15, what has changed at 5, 10 and 20. The second time that a point is
// reached is in a save of what has changed, or where a delta makes room; a temporary directory is renamed
// once. Rows of a hash table come and leave meanwhile.
TEST_CASE(
    "faults: so it is in a save of what has changed, of a range or a hash table, seen by all ps or not") {
  const std::string rows = NewDirectory() + "/rows.txt";
  const std::vector<std::string> synth = {"synth",   "libsvm", "--rows", "400",
                                          "--width", "3000",   "--out",  rows};
  REQUIRE(testing::Run(synth).code == 0);
  Stage stage{{"--set", "train.steps=20"}};
  const auto job = [&](const char* table) {
    return fmt::format(
        "model: {{kind: logistic, {}}}\n"
        "data: {{train: {{format: libsvm, path: \"{}\"}}}}\n"
        "train: {{batch_size: 20, mode: sync, optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n"
        "checkpoint: {{every_secs: 0, every_steps: 5, delta: 2, keep: 1}}\n"
        "failure: {{detect_s: 2, worker_lost: wait, restarts: 3}}\n",
        table, rows);
  };
  const std::set<std::string> of_saves = {"shard", "config", "manifest", "directory", "checkpoint", "save"};
  for (const bool streamed : {false, true}) {
    stage.streamed = streamed;
    stage.job = job(streamed ? "table: hash, admit_after: 2, evict_after: 4" : "inputs: 3000");
    const Stage traced = RunTraced(stage, NewDirectory());
    std::vector<Kill> kills;
    for (const std::string& name : traced.reached) {
      if (of_saves.count(name.substr(0, name.find('.'))) == 1) kills.push_back({name, &traced, 2});
    }
    CHECK(kills.size() >= 16);
    CheckEach(kills);
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
