// SIGTERM, SIGINT and SIGHUP to any one task, at any moment: the run is saved and ends everywhere, and the
// resumed one goes on from there. docs/operations.md, Signals.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <map>

#include "base/json.h"
#include "base/names.h"
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
  void Kill(const std::string& task) {
    At(task).Signal(SIGKILL);
    RunToEnd(At(task));
    tasks_.erase(task);
  }

  // All that were started end with this code and "stopped", and each says which task got the signal. The last
  // words of ps 0.
  std::string CheckStopped(int code, int signal, const std::string& to) {
    const std::string address = cluster_.address(to.substr(0, to.find(' ')), to.back() - '0');
    const std::string cause = fmt::format("stopped by {} to {} ({}; {}, pid {}) ", SignalName(signal), to,
                                          address, HostName(), At(to).pid());
    for (const auto& [name, task] : tasks_) {
      CAPTURE(name);
      CheckEnd(*task, code);
      CHECK(ReadResult(ResultPath(name)).at("status") == "stopped");
      CHECK(Contains(task->standard_error(), cause));
    }
    const std::string said = At("ps 0").standard_error();
    return said.substr(said.rfind("stopped by "));
  }
  // The same, and the checkpoint holds the step that is told. That step.
  int64_t CheckSaved(int signal, const std::string& to) {
    const std::string words = CheckStopped(signal == SIGINT ? 130 : 143, signal, to);
    const Json result = ReadResult(ResultPath("ps 0"));
    const int64_t step = result.at("global_step");
    const std::string path = fmt::format("{}/step-{:09}", checkpoints(), step);
    CHECK(std::filesystem::exists(path + "/manifest"));
    CHECK(Contains(words, fmt::format(") at global step {}; the newest checkpoint is {}\n", step, path)));
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
    for (const auto& [name, task] : tasks_) CheckEnd(*task);
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

TEST_CASE("signals: in training, one to any task saves the run, ends it everywhere, and it can go on") {
  const struct {
    const char* task;
    int signal;
    std::vector<std::string> more;
  } cases[] = {{"ps 0", SIGTERM, {}},
               {"ps 1", SIGINT, {"--set", "train.mode=sync"}},
               {"worker 0", SIGTERM, {"--set", "failure.on_sigterm=leave"}},  // the chief ends the run
               {"worker 1", SIGHUP, {}}};
  for (const auto& [task, signal, more] : cases) {
    CAPTURE(task);
    Run run(EndlessJob(), /*saves=*/true);
    run.StartAll(more);
    run.WaitForStep();
    run.At(task).Signal(signal);
    const int64_t step = run.CheckSaved(signal, task);
    CHECK(step >= 100);
    if (more.empty()) run.CheckGoesOn(step);
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
      CheckEnd(run->At(task), run == &saving ? 143 : 1);
      CHECK(ReadResult(run->ResultPath(task)).at("status") == "stopped");
    }
  }
}

TEST_CASE("signals: while a task is missing, one to any of the others ends them all") {
  for (const auto& [task, saves] : {std::pair("ps 0", true), {"ps 1", false}, {"worker 0", true}}) {
    CAPTURE(task);
    Run run(EndlessJob(), saves);
    for (const char* here : {"ps 0", "ps 1", "worker 0"}) run.Start(here);
    REQUIRE(run.At("ps 0").WaitForLine("waiting: joined 3 of 4"));
    run.At(task).Signal(SIGINT);
    run.CheckStopped(saves ? 130 : 1, SIGINT, task);
  }
}

TEST_CASE("signals: while the chief evaluates, or a checkpoint is written, one saves the run and ends it") {
  const struct {
    const char *more, *task, *mode;
    int signal;
  } cases[] = {{"eval: {every_steps: 1}\n", "ps 1", "async", SIGINT},
               {"eval: {every_steps: 1}\n", "worker 0", "async", SIGTERM},
               {"checkpoint: {every_steps: 1}\n", "ps 0", "async", SIGTERM},
               {"checkpoint: {every_steps: 1}\n", "worker 1", "sync", SIGINT}};
  for (const auto& [more, task, mode, signal] : cases) {
    CAPTURE(more);
    CAPTURE(task);
    Run run(EndlessDigits(more), /*saves=*/true);
    run.StartAll({"--set", fmt::format("train.mode={}", mode)});
    run.WaitForStep();
    run.At(task).Signal(signal);
    run.CheckSaved(signal, task);
  }
}

TEST_CASE(
    "signals: one to ps 0 while another ps is lost ends all that live, whether the loss was noticed or not") {
  for (const bool noticed : {false, true}) {
    CAPTURE(noticed);
    Run run(EndlessJob(), /*saves=*/true);
    run.StartAll({"--set", "failure.detect_s=2", "--set", "failure.wait_s=600"});
    run.WaitForStep();
    run.Kill("ps 1");
    if (noticed) REQUIRE(run.At("ps 0").WaitForLine("; the run goes back to its newest checkpoint"));
    run.At("ps 0").Signal(SIGTERM);
    const std::string words = run.CheckStopped(143, SIGTERM, "ps 0");
    CHECK(Contains(words, "; the newest checkpoint is " + run.checkpoints() + "/step-"));
    CHECK(Contains(words, " behind it are lost\n"));
    const Json result = ReadResult(run.ResultPath("ps 0"));
    CHECK(Contains(words, fmt::format(" at global step {}; ", result.at("global_step").get<int64_t>())));
  }
}

TEST_CASE("signals: where the disk of the checkpoints is full the run ends with 1 and says so") {
  Run run(EndlessJob(), /*saves=*/true);
  run.StartAll();
  run.WaitForStep();
  FillDiskOf(run.At("ps 0").pid());
  run.At("worker 1").Signal(SIGTERM);
  for (const std::string& one : kTasks) {
    CAPTURE(one);
    CheckEnd(run.At(one), 1);
    const std::string said = run.At(one).standard_error();
    CHECK(Contains(said, "nothing was saved"));
    CHECK(Contains(said, "File too large"));
    CHECK(Contains(said, "the newest checkpoint is " + run.checkpoints() + "/step-000000000"));
  }
}

TEST_CASE("signals: a task that is to stop does not wait for a ps 0 whose process is gone") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    Run run(EndlessJob(), saves);
    run.StartAll({"--set", "failure.detect_s=3600"});
    run.WaitForStep();
    run.At("ps 0").Signal(SIGKILL);
    RunToEnd(run.At("ps 0"));
    for (const char* task : {"ps 1", "worker 0", "worker 1"}) {
      CAPTURE(task);
      run.At(task).Signal(SIGTERM);
      CheckEnd(run.At(task), saves ? 143 : 1);
      const std::string said = run.At(task).standard_error();
      CHECK(Contains(said, "stopped by SIGTERM when ps 0 ("));
      CHECK(
          Contains(said, saves ? " stays as it is\n" : "; nothing was saved: there is no checkpoint.dir\n"));
      CHECK(ReadResult(run.ResultPath(task)).at("status") == "stopped");
    }
    std::filesystem::remove_all(run.checkpoints());  // a killed ps 0 leaves its locks there
  }
}

TEST_CASE("signals: with failure.on_sigterm leave a worker goes alone with 143, and the run goes on") {
  Run run(LinearJob(20000) + "hooks: {log_every_steps: 100}\n", /*saves=*/true);
  run.StartAll({"--set", "failure.on_sigterm=leave"});
  REQUIRE(run.At("worker 1").WaitForLine("worker 1 | epoch"));
  run.At("worker 1").Signal(SIGTERM);
  CheckEnd(run.At("worker 1"), 143);
  CHECK(Contains(run.At("worker 1").standard_error(), "SIGTERM: this worker leaves the run"));
  CHECK(ReadResult(run.ResultPath("worker 1")).at("status") == "stopped");
  for (const char* task : {"ps 0", "ps 1", "worker 0"}) CheckEnd(run.At(task));
  const Json result = ReadResult(run.ResultPath("worker 0"));
  CHECK(result.at("global_step") == 20000);
  CHECK(result.at("local_steps")[1].get<int64_t>() >= 100);
}

}  // namespace
}  // namespace dtrain::testing
