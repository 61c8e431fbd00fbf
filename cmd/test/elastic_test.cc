// Real processes that leave, come back and come late: the run goes on, and its steps add up.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <sstream>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// `more`: of the cluster.
std::string Job(const std::string& train, const std::string& failure, const std::string& more = "") {
  return fmt::format("  {}\n{}failure: {{detect_s: 3, {}}}\n", more, LongJob(train), failure);
}

struct Run {
  Cluster cluster;
  std::vector<std::unique_ptr<Process>> ps;
  std::vector<std::unique_ptr<Process>> workers;

  Run(int ps_count, int worker_count, const std::string& job) : cluster(ps_count, worker_count, job) {
    for (int i = 0; i < ps_count; ++i) ps.push_back(cluster.Start("ps", i));
    workers.resize(static_cast<size_t>(worker_count));
  }
  void Start(int worker) {
    std::vector<std::string> more = {"--result", Result(worker)};
    workers[static_cast<size_t>(worker)] = cluster.Start("worker", worker, more);
  }
  void Step(int worker) { REQUIRE(At(worker).WaitForLine("global step")); }
  void Kill(int worker) {
    At(worker).Signal(SIGKILL);
    REQUIRE(At(worker).WaitForEnd());
  }
  Process& At(int worker) { return *workers[static_cast<size_t>(worker)]; }
  std::string Result(int worker) const { return fmt::format("{}/{}.json", cluster.directory(), worker); }
  static void CheckDone(Process& process) {
    const int code = RunToEnd(process);
    const std::string said = process.standard_error();
    const std::string last = said.substr(said.size() > 3000 ? said.size() - 3000 : 0);
    CAPTURE(last);
    CHECK(code == 0);
  }
  // Every ps and these workers end well; the run's result.
  Json CheckDone(const std::vector<int>& survivors) {
    for (const auto& one : ps) CheckDone(*one);
    for (const int worker : survivors) CheckDone(At(worker));
    const Json result = ReadResult(Result(0));
    REQUIRE(result.is_object());
    CHECK(result.at("status") == "done");
    return result;
  }
};

int64_t Sum(const Json& numbers) {
  int64_t sum = 0;
  for (const auto& number : numbers) sum += number.get<int64_t>();
  return sum;
}

TEST_CASE("elastic: without a worker that is killed the run goes on to its last step, in every mode") {
  for (const std::string mode : {"async", "sync", "ssp"}) {
    CAPTURE(mode);
    Run run(2, 3, Job("steps: 600, mode: " + mode, "worker_lost: continue"));
    for (const int worker : {0, 1, 2}) run.Start(worker);
    run.Step(1);
    run.Kill(1);
    const Json result = run.CheckDone({0, 2});
    CHECK(result.at("global_step") == 600);
    REQUIRE(result.at("local_steps").size() == 3);
    CHECK(result.at("local_steps")[1].get<int64_t>() >= 10);
    if (mode == "sync") {
      CHECK(result.at("local_steps")[0] == 600);
      CHECK(result.at("local_steps")[1].get<int64_t>() < 600);
    } else {
      CHECK(Sum(result.at("local_steps")) == 600);
    }
    CHECK(result.at("lost_workers") == std::vector<int>{1});
    CHECK(result.at("deterministic") == false);
    CHECK(Contains(run.ps[0]->standard_error(), "the run goes on without it"));
    for (const int worker : {0, 2}) {
      CHECK(Contains(run.At(worker).standard_error(), "worker 1 was lost after "));
      CHECK(Contains(run.At(worker).standard_error(), "done, but worker 1 was lost\n"));
    }
  }
}

TEST_CASE("elastic: a worker that is killed and started again goes on at its step") {
  Run run(1, 2, Job("steps: 1500", "worker_lost: continue"));
  for (const int worker : {0, 1}) run.Start(worker);
  run.Step(1);
  run.Kill(1);
  run.Start(1);
  REQUIRE(run.At(1).WaitForLine("goes on at local step"));
  const Json result = run.CheckDone({0, 1});
  CHECK(result.at("global_step") == 1500);
  CHECK(Sum(result.at("local_steps")) == 1500);
  CHECK(result.at("lost_workers") == Json::array());
  CHECK_FALSE(Contains(run.At(0).standard_error(), "worker 1 was lost after "));
}

TEST_CASE("elastic: the run starts with min_workers, and one that comes later takes part") {
  for (const std::string mode : {"async", "ssp"}) {
    CAPTURE(mode);
    Run run(2, 3, Job("steps: 1500, mode: " + mode, "worker_lost: continue", "min_workers: 1"));
    run.Start(0);
    run.Step(0);
    run.Start(1);
    run.Step(1);
    const Json result = run.CheckDone({0, 1});
    CHECK(result.at("global_step") == 1500);
    CHECK(Sum(result.at("local_steps")) == 1500);
    CHECK(result.at("local_steps")[2] == 0);
    CHECK(Contains(run.ps[0]->standard_error(), "3 of 5 tasks are here"));
    CHECK(Contains(run.At(0).standard_error(), "worker 2 took no part"));
  }
}

// The numbers behind "global step" in a worker's log, in their order.
std::vector<int64_t> GlobalSteps(Process& worker) {
  std::vector<int64_t> steps;
  std::istringstream log(worker.standard_error());
  for (std::string line; std::getline(log, line);) {
    const std::string mark = "global step ";
    const size_t at = line.find(mark);
    if (at != std::string::npos) steps.push_back(std::stoll(line.substr(at + mark.size())));
  }
  return steps;
}

TEST_CASE("elastic: sync with 1, then 4, then 2 workers applies every step once and ends at the last") {
  Run run(
      2, 4,
      Job("steps: 1000, mode: sync", "worker_lost: continue", "min_workers: 1") + "log: {level: debug}\n");
  run.workers[0] =
      run.cluster.Start("worker", 0, {"--result", run.Result(0), "--set", "hooks.log_every_steps=1"});
  run.Step(0);
  for (const int worker : {1, 2, 3}) run.Start(worker);
  for (const int worker : {1, 2, 3}) run.Step(worker);
  for (const int worker : {1, 3}) run.Kill(worker);
  const Json result = run.CheckDone({0, 2});
  CHECK(result.at("global_step") == 1000);
  CHECK(result.at("local_steps")[0] == 1000);
  CHECK(result.at("deterministic") == false);
  const std::vector<int64_t> steps = GlobalSteps(run.At(0));
  REQUIRE(steps.size() == 1000);
  for (size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == static_cast<int64_t>(i) + 1);
}

TEST_CASE("elastic: sync that waits for workers ends with the same bits, whoever was killed on the way") {
  const std::string job = Job("steps: 300, mode: sync", "worker_lost: wait");
  std::string crc;
  {
    Run run(1, 3, job);
    for (const int worker : {0, 1, 2}) run.Start(worker);
    const Json result = run.CheckDone({0, 1, 2});
    crc = result.at("model_crc");
    CHECK(result.at("deterministic") == true);
  }
  Run run(2, 3, job);
  for (const int worker : {0, 1, 2}) run.Start(worker);
  for (const int worker : {1, 2, 1, 0}) {
    run.Step(worker);
    run.Kill(worker);
    run.Start(worker);
    REQUIRE(run.At(worker).WaitForLine("goes on at local step"));
  }
  const Json result = run.CheckDone({0, 1, 2});
  CHECK(result.at("global_step") == 300);
  CHECK(result.at("local_steps") == Json({300, 300, 300}));
  CHECK(result.at("model_crc") == crc);
  CHECK(result.at("deterministic") == true);
}

TEST_CASE("elastic: a worker that wakes after it was given up exits 4, and the others are done without it") {
  Run run(1, 2, Job("steps: 5000", "worker_lost: continue"));
  for (const int worker : {0, 1}) run.Start(worker);
  run.Step(1);
  run.At(1).Signal(SIGSTOP);
  REQUIRE(run.ps[0]->WaitForLine("the run goes on without it"));
  run.At(1).Signal(SIGCONT);
  REQUIRE(run.At(1).WaitForEnd());
  CAPTURE(run.At(1).standard_error());
  CHECK(run.At(1).exit_code() == 4);
  CHECK(Contains(run.At(1).standard_error(), "gave this task up"));
  CHECK(ReadResult(run.Result(1)).at("status") == "peer_lost");
  const Json result = run.CheckDone({0});
  CHECK(result.at("global_step") == 5000);
  CHECK(Sum(result.at("local_steps")) == 5000);
}

}  // namespace
}  // namespace dtrain::testing
