// Real processes that never come, die or stop: nobody waits longer than the configured deadline, and exit 4
// names the one that is missing.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr double kDetect = 2;
constexpr double kMargin = 5;

std::string FailingJob() {
  return EndlessJob() + fmt::format("failure: {{detect_s: {}, worker_lost: fail}}\n", kDetect);
}

// A cluster in the middle of its training.
struct Running {
  Cluster cluster;
  std::vector<std::unique_ptr<Process>> ps;
  std::vector<std::unique_ptr<Process>> workers;

  Running(int ps_count, int worker_count) : cluster(ps_count, worker_count, FailingJob()) {
    for (int i = 0; i < ps_count; ++i) ps.push_back(Start("ps", i));
    for (int i = 0; i < worker_count; ++i) workers.push_back(Start("worker", i));
    for (const auto& worker : workers) REQUIRE(worker->WaitForLine("global step"));
  }
  std::unique_ptr<Process> Start(const std::string& role, int index) const {
    return cluster.Start(role, index, {"--result", Result(role, index)});
  }
  std::string Result(const std::string& role, int index) const {
    return fmt::format("{}/{}{}.json", cluster.directory(), role, index);
  }
};

// The survivor ends with 4 in time, and says who is lost.
void CheckSurvivor(Process& survivor, const std::string& lost, const std::string& result) {
  const bool ended = survivor.WaitForEnd(milliseconds(static_cast<int64_t>((kDetect + kMargin) * 1000)));
  const std::string said = survivor.standard_error();
  const std::string last = said.substr(said.size() > 3000 ? said.size() - 3000 : 0);
  CAPTURE(last);
  CAPTURE(lost);
  REQUIRE(ended);
  CHECK(survivor.exit_code() == 4);
  CHECK(Contains(said, lost));
  const Json written = ReadResult(result);
  REQUIRE(written.is_object());
  CHECK(written.at("status") == "peer_lost");
}

TEST_CASE("failure: a ps that never comes is exit 4 after failure.startup_timeout_s, with its address") {
  const Cluster cluster(2, 1, LinearJob(20) + "failure: {startup_timeout_s: 1}\n");
  const auto ps = cluster.Start("ps", 0);
  const auto worker = cluster.Start("worker", 0);
  for (Process* task : {ps.get(), worker.get()}) {
    CHECK(RunToEnd(*task) == 4);
    CAPTURE(task->standard_error());
    CHECK(Contains(task->standard_error(), "ps 1 (" + cluster.address("ps", 1)));
    CHECK(task->seconds() >= 1);
    CHECK(task->seconds() < 1 + kMargin);
  }
}

TEST_CASE("failure: a worker alone ends with 4 and names ps 0") {
  const Cluster cluster(1, 1, LinearJob(20) + "failure: {startup_timeout_s: 1}\n");
  const auto worker = cluster.Start("worker", 0);
  CHECK(RunToEnd(*worker) == 4);
  CAPTURE(worker->standard_error());
  CHECK(Contains(worker->standard_error(), "ps 0 (" + cluster.address("ps", 0)));
  CHECK(worker->seconds() < 1 + kMargin);
}

TEST_CASE("failure: a worker that never comes is exit 4 after failure.startup_timeout_s, with its address") {
  const Cluster cluster(1, 2, LinearJob(20) + "failure: {startup_timeout_s: 1}\n");
  const auto ps = cluster.Start("ps", 0);
  const auto worker = cluster.Start("worker", 0);
  for (Process* task : {ps.get(), worker.get()}) {
    CHECK(RunToEnd(*task) == 4);
    CAPTURE(task->standard_error());
    CHECK(Contains(task->standard_error(), "worker 1 (" + cluster.address("worker", 1)));
    CHECK(task->seconds() < 1 + kMargin);
  }
}

TEST_CASE("failure: with worker_lost fail a worker killed in the middle ends the run with 4 everywhere") {
  Running run(2, 2);
  run.workers[1]->Signal(SIGKILL);
  for (int i : {0, 1}) CheckSurvivor(*run.ps[i], "worker 1 (", run.Result("ps", i));
  CheckSurvivor(*run.workers[0], "worker 1 (", run.Result("worker", 0));
}

TEST_CASE("failure: with worker_lost fail the chief killed in the middle ends the run with 4 everywhere") {
  Running run(1, 2);
  run.workers[0]->Signal(SIGKILL);
  CheckSurvivor(*run.ps[0], "worker 0 (", run.Result("ps", 0));
  CheckSurvivor(*run.workers[1], "worker 0 (", run.Result("worker", 1));
}

TEST_CASE("failure: ps 0 killed in the middle ends the run with 4 everywhere") {
  Running run(2, 2);
  run.ps[0]->Signal(SIGKILL);
  CheckSurvivor(*run.ps[1], "ps 0 (", run.Result("ps", 1));
  for (int i : {0, 1}) CheckSurvivor(*run.workers[i], "ps 0 (", run.Result("worker", i));
}

TEST_CASE("failure: another ps killed in the middle ends the run with 4 everywhere") {
  Running run(2, 2);
  run.ps[1]->Signal(SIGKILL);
  CheckSurvivor(*run.ps[0], "ps 1 (", run.Result("ps", 0));
  for (int i : {0, 1}) CheckSurvivor(*run.workers[i], "ps 1 (", run.Result("worker", i));
}

TEST_CASE("failure: a ps that is stopped, not dead, ends the run with 4 everywhere") {
  Running run(2, 2);
  run.ps[1]->Signal(SIGSTOP);
  CheckSurvivor(*run.ps[0], "ps 1 (", run.Result("ps", 0));
  for (int i : {0, 1}) CheckSurvivor(*run.workers[i], "ps 1 (", run.Result("worker", i));
  // When it wakes it finds that it was given up.
  run.ps[1]->Signal(SIGCONT);
  REQUIRE(run.ps[1]->WaitForEnd());
  CHECK(run.ps[1]->exit_code() == 4);
}

TEST_CASE(
    "failure: with worker_lost fail a worker that is stopped, not dead, ends the run with 4 everywhere") {
  Running run(1, 2);
  run.workers[1]->Signal(SIGSTOP);
  CheckSurvivor(*run.ps[0], "worker 1 (", run.Result("ps", 0));
  CheckSurvivor(*run.workers[0], "worker 1 (", run.Result("worker", 0));
  run.workers[1]->Signal(SIGCONT);
  REQUIRE(run.workers[1]->WaitForEnd());
  CHECK(run.workers[1]->exit_code() == 4);
}

TEST_CASE(
    "failure: a run that diverges is exit 3 at the worker that saw it, and everywhere else with the reason") {
  const Cluster cluster(2, 1, LinearJob(1000) + "failure: {detect_s: 2}\n");
  const std::string result = cluster.directory() + "/ps1.json";
  const std::vector<std::string> diverges = {"--set", "train.optimizer.learning_rate=1e30"};
  const auto ps = cluster.Start("ps", 0, diverges), worker = cluster.Start("worker", 0, diverges);
  const auto ps1 = cluster.Start("ps", 1, {diverges[0], diverges[1], "--result", result});
  CHECK(RunToEnd(*worker) == 3);
  CHECK(Contains(worker->standard_error(), "train.optimizer.learning_rate"));
  // The loss overflows before anything else does; which weight is the largest is the data's choice.
  const std::string found = "worker 0, local step 2: the loss is inf, and of its weights ";
  const auto names_tensor = [&found](const std::string& log) {
    return Contains(log, found + "weights/W1[0] is ") || Contains(log, found + "biases/b1[0] is ");
  };
  CHECK(names_tensor(worker->standard_error()));
  for (Process* other : {ps.get(), ps1.get()}) {
    CHECK(RunToEnd(*other) == 3);
    CHECK(Contains(other->standard_error(), "worker 0 (" + cluster.address("worker", 0)));
    CHECK(Contains(other->standard_error(), "ended the run with exit code 3"));
    CHECK(names_tensor(other->standard_error()));
  }
  CHECK(ReadResult(result).at("status") == "diverged");
}

TEST_CASE(
    "failure: data that one worker cannot read end the run with 2 everywhere, also for one that comes "
    "later") {
  const Cluster cluster(1, 2,
                        "model: {kind: softmax, inputs: 4, outputs: 2}\n"
                        "data: {train: {format: csv, path: gone.csv, label: y}}\n"
                        "train: {batch_size: 2, steps: 10}\n"
                        "failure: {startup_timeout_s: 60}\n");
  std::string rows = "a,b,c,d,y\n";
  for (int i = 0; i < 50; ++i) rows += "1,2,3,4,0\n5,6,7,8,1\n";
  const std::string good = cluster.directory() + "/good.csv";
  WriteFile(good, rows);
  const auto ps = cluster.Start("ps", 0), reader = cluster.Start("worker", 1);
  // It may not have joined when the reader ends.
  const auto late = cluster.Start("worker", 0, {"--set", "data.train.path=" + good});
  CHECK(RunToEnd(*reader) == 2);
  for (Process* other : {ps.get(), late.get()}) {
    CHECK(RunToEnd(*other) == 2);
    CAPTURE(other->standard_error());
    CHECK(Contains(other->standard_error(), "gone.csv: cannot be opened"));
    CHECK(other->seconds() < 30);
  }
  CHECK(Contains(late->standard_error(), "worker 1 (" + cluster.address("worker", 1)));
}

TEST_CASE("failure: a second signal ends a task at once with 1, and its result says stopped") {
  Running run(1, 2);
  // Who sleeps neither saves nor ends.
  run.ps[0]->Signal(SIGSTOP);
  run.workers[1]->Signal(SIGTERM);
  REQUIRE(run.workers[1]->WaitForLine("SIGTERM: asks the run to save and end"));
  run.workers[1]->Signal(SIGINT);
  CHECK(RunToEnd(*run.workers[1]) == 1);
  CHECK(Contains(run.workers[1]->standard_error(),
                 "ended at once by a second SIGINT; nothing was saved since the last checkpoint"));
  CHECK(ReadResult(run.Result("worker", 1)).at("status") == "stopped");
}

}  // namespace
}  // namespace dtrain::testing
