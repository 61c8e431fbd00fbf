// SIGTERM, SIGINT and SIGHUP to any one task, at any moment: the run is saved and ends everywhere, and the
// resumed one goes on from there. docs/operations.md, Signals.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <map>

#include "base/json.h"
#include "base/signals.h"

#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kForEver = 1000000000000;
const std::vector<std::string> kTasks = {"ps 0", "ps 1", "worker 0", "worker 1"};

// An evaluation takes longer than a step here, and so does a checkpoint.
std::string EndlessDigits(const std::string& more) {
  const std::string train = fmt::format("batch_size: 50, steps: {}", kForEver);
  return DigitsJob("kind: mlp, hidden: [300]", 500, 2000, train) + "hooks: {log_every_steps: 2}\n" + more;
}

// 2 ps and 2 workers, which save to a directory of their own or to none.
class Run {
 public:
  Run(const std::string& job, bool saves) : cluster_(2, 2, job), saves_(saves) {}

  void Start(const std::string& task, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--result", ResultPath(task)};
    if (saves_) all.insert(all.end(), {"--set", "checkpoint.dir=" + checkpoints()});
    all.insert(all.end(), more.begin(), more.end());
    const size_t space = task.find(' ');
    tasks_[task] = cluster_.Start(task.substr(0, space), task.back() - '0', all);
  }
  void StartAll(const std::vector<std::string>& more = {}) {
    for (const std::string& task : kTasks) Start(task, more);
  }
  void WaitForStep() { REQUIRE(At("worker 0").WaitForLine("worker 0 | epoch")); }
  Process& At(const std::string& task) { return *tasks_.at(task); }

  // All that were started end with this code and "stopped", and ps 0 says so; its last words.
  std::string CheckStopped(int code) {
    std::string words;
    for (const auto& [name, task] : tasks_) {
      const int ended = RunToEnd(*task);
      const std::string said = task->standard_error();
      const std::string last = said.substr(said.size() > 3000 ? said.size() - 3000 : 0);
      CAPTURE(name);
      CAPTURE(last);
      CHECK(ended == code);
      CHECK(ReadResult(ResultPath(name)).at("status") == "stopped");
      if (name == "ps 0") words = said.substr(said.rfind("stopped by "));
    }
    return words;
  }
  // The same, and the checkpoint holds the step that is told. That step.
  int64_t CheckSaved(int signal) {
    const std::string words = CheckStopped(signal == SIGINT ? 130 : 143);
    const Json result = ReadResult(ResultPath("ps 0"));
    const int64_t step = result.at("global_step");
    const std::string path = fmt::format("{}/step-{:09}", checkpoints(), step);
    CHECK(std::filesystem::exists(path + "/manifest"));
    CHECK(words == fmt::format("stopped by {} at global step {}; the newest checkpoint is {}\n",
                               SignalName(signal), step, path));
    for (const auto& [name, task] : tasks_) {
      const Json other = ReadResult(ResultPath(name));
      CHECK(other.at("global_step") == step);
      CHECK(other.at("checkpoint") == path);
    }
    return step;
  }
  // Goes on from `step` for 300 more.
  void CheckGoesOn(int64_t step) {
    StartAll({"--set", fmt::format("train.steps={}", step + 300)});
    for (const auto& [name, task] : tasks_) {
      CAPTURE(task->standard_error());
      CHECK(RunToEnd(*task) == 0);
    }
    const Json result = ReadResult(ResultPath("worker 0"));
    CHECK(result.at("status") == "done");
    CHECK(result.at("global_step") == step + 300);
    CHECK(result.at("local_steps")[0].get<int64_t>() + result.at("local_steps")[1].get<int64_t>() ==
          step + 300);
  }

  std::string checkpoints() const { return cluster_.directory() + "/checkpoints"; }
  std::string ResultPath(const std::string& task) const {
    return cluster_.directory() + "/" + task + ".json";
  }

 private:
  const Cluster cluster_;
  const bool saves_;
  std::map<std::string, std::unique_ptr<Process>> tasks_;
};

// SIGTERM and SIGINT take turns.
int SignalFor(size_t task) { return task % 2 == 0 ? SIGTERM : SIGINT; }

TEST_CASE("signals: in training, one to any task saves the run, ends it everywhere, and it can go on") {
  for (size_t i = 0; i < kTasks.size(); ++i) {
    CAPTURE(kTasks[i]);
    Run run(EndlessJob(), /*saves=*/true);
    run.StartAll();
    run.WaitForStep();
    run.At(kTasks[i]).Signal(SignalFor(i));
    const int64_t step = run.CheckSaved(SignalFor(i));
    CHECK(step >= 100);
    run.CheckGoesOn(step);
  }
}

TEST_CASE("signals: in sync too") {
  Run run(EndlessJob(), /*saves=*/true);
  run.StartAll({"--set", "train.mode=sync"});
  run.WaitForStep();
  run.At("worker 1").Signal(SIGTERM);
  CHECK(run.CheckSaved(SIGTERM) >= 100);
}

TEST_CASE("signals: SIGHUP is as SIGTERM, and is told by its name") {
  Run run(EndlessJob(), /*saves=*/true);
  run.StartAll();
  run.WaitForStep();
  run.At("worker 1").Signal(SIGHUP);
  run.CheckSaved(SIGHUP);
}

TEST_CASE("signals: without checkpoint.dir all tasks end with 1 and say that nothing was saved") {
  for (size_t i = 0; i < kTasks.size(); ++i) {
    CAPTURE(kTasks[i]);
    Run run(EndlessJob(), /*saves=*/false);
    run.StartAll();
    run.WaitForStep();
    run.At(kTasks[i]).Signal(SignalFor(i));
    run.CheckStopped(1);
    for (const std::string& task : kTasks) {
      CHECK(Contains(run.At(task).standard_error(), "nothing was saved: there is no checkpoint.dir"));
    }
  }
}

TEST_CASE("signals: before ps 0 is there the task that is asked ends by itself") {
  Run saving(EndlessJob(), /*saves=*/true), other(EndlessJob(), /*saves=*/false);
  const std::vector<std::string> waiting = {"ps 1", "worker 0", "worker 1"};
  for (const std::string& task : waiting) {
    for (Run* run : {&saving, &other}) run->Start(task);
  }
  for (const std::string& task : waiting) {
    for (Run* run : {&saving, &other}) {
      REQUIRE(run->At(task).WaitForLine("waiting for ps 0"));
      run->At(task).Signal(SIGTERM);
      const int code = RunToEnd(run->At(task));
      CAPTURE(run->At(task).standard_error());
      CHECK(code == (run == &saving ? 143 : 1));
      CHECK(ReadResult(run->ResultPath(task)).at("status") == "stopped");
    }
  }
}

TEST_CASE("signals: while a task is missing, one to any of the others ends them all") {
  const std::vector<std::string> here = {"ps 0", "ps 1", "worker 0"};
  std::vector<std::unique_ptr<Run>> runs;
  for (size_t i = 0; i < 2 * here.size(); ++i) {
    runs.push_back(std::make_unique<Run>(EndlessJob(), /*saves=*/i < here.size()));
    for (const std::string& task : here) runs.back()->Start(task);
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(i);
    REQUIRE(runs[i]->At("ps 0").WaitForLine("waiting: joined 3 of 4"));
    runs[i]->At(here[i % here.size()]).Signal(SIGINT);
    runs[i]->CheckStopped(i < here.size() ? 130 : 1);
  }
}

TEST_CASE("signals: while the chief evaluates, one to any task saves the run and ends it") {
  for (size_t i = 0; i < kTasks.size(); ++i) {
    CAPTURE(kTasks[i]);
    Run run(EndlessDigits("eval: {every_steps: 1}\n"), /*saves=*/true);
    run.StartAll();
    run.WaitForStep();
    run.At(kTasks[i]).Signal(SignalFor(i));
    run.CheckSaved(SignalFor(i));
  }
}

TEST_CASE("signals: while a checkpoint is written, one to any task saves the run and ends it") {
  for (size_t i = 0; i < kTasks.size(); ++i) {
    CAPTURE(kTasks[i]);
    Run run(EndlessDigits("checkpoint: {every_steps: 1}\n"), /*saves=*/true);
    run.StartAll({"--set", i < 2 ? "train.mode=async" : "train.mode=sync"});
    run.WaitForStep();
    run.At(kTasks[i]).Signal(SignalFor(i));
    run.CheckSaved(SignalFor(i));
  }
}

TEST_CASE("signals: where the disk of the checkpoints is full the run ends with 1 and says so") {
  for (const std::string task : {"ps 0", "worker 1"}) {
    CAPTURE(task);
    Run run(EndlessJob(), /*saves=*/true);
    run.StartAll();
    run.WaitForStep();
    FillDiskOf(run.At("ps 0").pid());
    run.At(task).Signal(SIGTERM);
    for (const std::string& one : kTasks) {
      const int code = RunToEnd(run.At(one));
      const std::string said = run.At(one).standard_error();
      CAPTURE(one);
      CAPTURE(said.substr(said.size() > 3000 ? said.size() - 3000 : 0));
      CHECK(code == 1);
      CHECK(Contains(said, "nothing was saved"));
      CHECK(Contains(said, "File too large"));
      CHECK(Contains(said, "the newest checkpoint is " + run.checkpoints() + "/step-000000000"));
    }
  }
}

TEST_CASE("signals: with failure.on_sigterm leave a worker goes alone with 143, and the run goes on") {
  Run run(LinearJob(20000) + "hooks: {log_every_steps: 100}\n", /*saves=*/true);
  run.StartAll({"--set", "failure.on_sigterm=leave"});
  REQUIRE(run.At("worker 1").WaitForLine("worker 1 | epoch"));
  run.At("worker 1").Signal(SIGTERM);
  CHECK(RunToEnd(run.At("worker 1")) == 143);
  CHECK(Contains(run.At("worker 1").standard_error(), "SIGTERM: this worker leaves the run"));
  CHECK(ReadResult(run.ResultPath("worker 1")).at("status") == "stopped");
  for (const std::string task : {"ps 0", "ps 1", "worker 0"}) {
    CAPTURE(run.At(task).standard_error());
    CHECK(RunToEnd(run.At(task)) == 0);
  }
  const Json result = ReadResult(run.ResultPath("worker 0"));
  CHECK(result.at("global_step") == 20000);
  CHECK(result.at("local_steps")[1].get<int64_t>() >= 100);
}

TEST_CASE("signals: with failure.on_sigterm leave one to the chief still ends the run") {
  Run run(EndlessJob(), /*saves=*/true);
  run.StartAll({"--set", "failure.on_sigterm=leave"});
  run.WaitForStep();
  run.At("worker 0").Signal(SIGTERM);
  run.CheckSaved(SIGTERM);
}

}  // namespace
}  // namespace dtrain::testing
