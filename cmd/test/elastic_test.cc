// Real processes that leave and come late: the run goes on, and its steps add up.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <sstream>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

struct Run {
  Cluster cluster;
  std::vector<std::unique_ptr<Process>> ps;
  std::vector<std::unique_ptr<Process>> workers;

  // `of_cluster`: more keys of the section.
  Run(int ps_count, int worker_count, const std::string& train, const std::string& of_cluster)
      : cluster(ps_count, worker_count,
                fmt::format("  {}\n{}failure: {{detect_s: 3}}\n", of_cluster, LongJob(train))) {
    for (int i = 0; i < ps_count; ++i) ps.push_back(cluster.Start("ps", i));
    workers.resize(static_cast<size_t>(worker_count));
  }
  void Start(int worker, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--result", Result(worker)});
    workers[static_cast<size_t>(worker)] = cluster.Start("worker", worker, more);
  }
  void Step(int worker) { REQUIRE(At(worker).WaitForLine("global step")); }
  Process& At(int worker) { return *workers[static_cast<size_t>(worker)]; }
  std::string Result(int worker) const { return fmt::format("{}/{}.json", cluster.directory(), worker); }
  // Every ps and these workers end well; the run's result.
  Json CheckDone(const std::vector<int>& survivors) {
    CheckEnds(ps);
    for (const int worker : survivors) CheckEnd(At(worker));
    const Json result = ReadResult(Result(0));
    REQUIRE(result.is_object());
    CHECK(result.at("status") == "done");
    return result;
  }
};

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
  Run run(2, 4, "steps: 1000, mode: sync", "min_workers: 1");
  run.Start(0, {"--set", "hooks.log_every_steps=1"});
  run.Step(0);
  for (const int worker : {1, 2, 3}) run.Start(worker);
  for (const int worker : {1, 2, 3}) run.Step(worker);
  for (const int worker : {1, 3}) run.At(worker).Signal(SIGKILL);
  const Json result = run.CheckDone({0, 2});
  CHECK(result.at("global_step") == 1000);
  CHECK(result.at("local_steps")[0] == 1000);
  CHECK(result.at("deterministic") == false);
  const std::vector<int64_t> steps = GlobalSteps(run.At(0));
  REQUIRE(steps.size() == 1000);
  for (size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == static_cast<int64_t>(i) + 1);
}

TEST_CASE("elastic: a worker that wakes after it was given up exits 4, and the others are done without it") {
  Run run(1, 2, "steps: 5000", "");
  for (const int worker : {0, 1}) run.Start(worker);
  run.Step(1);
  run.At(1).Signal(SIGSTOP);
  REQUIRE(run.ps[0]->WaitForLine("the run goes on without it"));
  run.At(1).Signal(SIGCONT);
  CheckEnd(run.At(1), 4);
  CHECK(Contains(run.At(1).standard_error(), "gave this task up"));
  CHECK(ReadResult(run.Result(1)).at("status") == "peer_lost");
  const Json result = run.CheckDone({0});
  CHECK(result.at("global_step") == 5000);
  CHECK(result.at("local_steps")[0].get<int64_t>() + result.at("local_steps")[1].get<int64_t>() == 5000);
}

// Worker 0 is killed for good: the run goes on, saves, evaluates and ends with 0.
void CheckDoneWithoutWorker0(const std::string& mode) {
  CAPTURE(mode);
  AdoptOrphans();
  const LocalJob job(DigitsJob("kind: softmax", 4000, 300, "batch_size: 200, steps: 3000, mode: " + mode) +
                     "eval: {every_steps: 100}\n"
                     "hooks: {log_every_steps: 10}\n"
                     "failure: {detect_s: 2}\n");
  const std::string checkpoints = job.directory + "/ckpt";
  const auto run = job.Start({"--ps", "1", "--workers", "3", "--set", "checkpoint.dir=" + checkpoints});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 0), SIGKILL);
  CheckEnd(*run);
  const std::string said = run->standard_error();
  CHECK(Contains(said, "the run goes on without it"));
  CHECK(Contains(said, "dtrain: worker 0 was killed by SIGKILL; the run went on without it"));
  // In async the steps may be over before anybody misses it.
  if (mode != "async") CHECK(Contains(said, "worker 1 | evaluation at global step"));
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 3000);
  CHECK(result.at("test_accuracy").is_number());
  CHECK(result.at("checkpoint") == checkpoints + "/step-000003000");
  CHECK(std::filesystem::exists(checkpoints + "/step-000003000/manifest"));
  CHECK(result.at("lost_workers") == std::vector<int>{0});
  CHECK(result.at("local_steps").size() == 3);
  CHECK(result.at("deterministic") == false);
  CHECK(NoneLeft());
}

TEST_CASE("elastic: dtrain local without restarts is done when worker 0 is killed, with all results") {
  for (const char* mode : {"async", "sync", "ssp"}) CheckDoneWithoutWorker0(mode);
}

}  // namespace
}  // namespace dtrain::testing
