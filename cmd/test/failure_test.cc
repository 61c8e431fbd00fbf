// Real processes that never come, die or stop: nobody waits longer than the configured deadline, and exit 4
// names the one that is missing.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "base/json.h"
#include "base/names.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

std::string FailingJob() {
  return EndlessJob() + fmt::format("failure: {{detect_s: {}, worker_lost: fail}}\n", kDetect.count());
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

TEST_CASE(
    "failure: with worker_lost fail a task that is killed, or stopped, ends the run with 4 everywhere") {
  const struct {
    const char* role;
    int index;
    int signal;
  } cases[] = {{"worker", 1, SIGKILL}, {"ps", 0, SIGKILL}, {"ps", 1, SIGSTOP}, {"worker", 0, SIGSTOP}};
  for (const auto& [role, index, signal] : cases) {
    CAPTURE(role);
    CAPTURE(index);
    Running run(2, 2);
    auto& tasks = *role == 'p' ? run.ps : run.workers;
    const std::unique_ptr<Process> lost = std::move(tasks[static_cast<size_t>(index)]);
    lost->Signal(signal);
    for (const int i : {0, 1}) {
      const std::string name = fmt::format("{} {} (", role, index);
      if (run.ps[i] != nullptr) CheckSurvivor(*run.ps[i], name, run.Result("ps", i));
      if (run.workers[i] != nullptr) CheckSurvivor(*run.workers[i], name, run.Result("worker", i));
    }
    if (signal == SIGKILL) continue;
    // When it wakes it finds that it was given up.
    lost->Signal(SIGCONT);
    CheckEnd(*lost, 4);
  }
}

TEST_CASE(
    "failure: a run that diverges is exit 3 at the worker that saw it, and everywhere else with the reason") {
  const Cluster cluster(2, 1, LinearJob(1000) + "failure: {detect_s: 2}\n");
  const std::string result = cluster.directory() + "/ps1.json";
  const std::vector<std::string> diverges = {"--set", "train.optimizer.learning_rate=1e30"};
  const auto ps = cluster.Start("ps", 0, diverges), worker = cluster.Start("worker", 0, diverges);
  const auto ps1 = cluster.Start("ps", 1, {diverges[0], diverges[1], "--result", result});
  CheckEnd(*worker, 3);
  CHECK(Contains(worker->standard_error(), "train.optimizer.learning_rate"));
  // The loss overflows before anything else does; which weight is the largest is the data's choice.
  const std::string found = "worker 0, local step 2: the loss is inf, and of its weights ";
  const auto names_tensor = [&found](const std::string& log) {
    return Contains(log, found + "weights/W1[0] is ") || Contains(log, found + "biases/b1[0] is ");
  };
  CHECK(names_tensor(worker->standard_error()));
  for (Process* other : {ps.get(), ps1.get()}) {
    CheckEnd(*other, 3);
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
    CheckEnd(*other, 2);
    const std::string said = other->standard_error();
    CHECK(Contains(said, "gone.csv: cannot be opened"));
    const std::string ended = " ended the run ";
    CHECK(said.find(ended) != std::string::npos);
    CHECK(said.find(ended) == said.rfind(ended));
    CHECK(other->seconds() < 30);
  }
  CHECK(Contains(late->standard_error(), "worker 1 (" + cluster.address("worker", 1)));
}

TEST_CASE(
    "failure: the loss of a worker says what becomes of its rows, and two tasks of one index are named") {
  const Cluster cluster(1, 2, EndlessJob() + "failure: {detect_s: 2}\n");
  const auto ps = cluster.Start("ps", 0), worker = cluster.Start("worker", 0);
  REQUIRE(ps->WaitForLine("waiting: joined 2 of 3; missing: worker 1"));
  const auto twin = cluster.Start("worker", 0);
  REQUIRE(ps->WaitForLine("two tasks say that they are worker 0: index in use by worker 0 ("));
  CHECK(Contains(ps->standard_error(), fmt::format("{}, pid {}); the newcomer is {}, pid {}", HostName(),
                                                   worker->pid(), HostName(), twin->pid())));
  CHECK(twin->WaitForLine("; if that one is alive, this one ends within 2 s (failure.detect_s)"));
  CheckEnd(*twin, 2);
  const auto other = cluster.Start("worker", 1);
  REQUIRE(other->WaitForLine("global step"));
  other->Signal(SIGKILL);
  CHECK(ps->WaitForLine(
      "; the run goes on without it; nobody trains on its share of the rows (1 of 2) until it is back"));
}

// Rows of a table of two features; some of them can be other ones.
std::string Rows(int count, const std::string& first = "0.5,1,0") {
  std::string rows = "a,b,y\n" + first + "\n";
  for (int row = 1; row < count; ++row) rows += fmt::format("{},{},{}\n", row % 7, row % 5, row % 2);
  return rows;
}

TEST_CASE("failure: with data.split: dynamic all workers have as many devices and the same rows") {
  const Cluster cluster(1, 2,
                        "model: {kind: mlp, hidden: [400], outputs: 2}\n"
                        "data: {train: {format: csv, path: PATH, label: y}, split: dynamic}\n"
                        "train: {mode: async, batch_size: 100, steps: 100000}\n"
                        "hooks: {log_every_steps: 10}\nfailure: {detect_s: 2}\n");
  for (const int rows : {390, 400})
    WriteFile(fmt::format("{}/{}.csv", cluster.directory(), rows), Rows(rows));
  const auto start = [&](const std::string& role, int index, int rows,
                         const std::string& devices = "[0, 1]") {
    return cluster.Start(role, index,
                         {"--set", "cluster.min_workers=1", "--set",
                          fmt::format("data.train.path={}/{}.csv", cluster.directory(), rows), "--set",
                          "device.ids=" + devices});
  };
  const auto ps = start("ps", 0, 400, "[0]"), worker = start("worker", 0, 400);
  REQUIRE(worker->WaitForLine("global step"));
  const auto other = start("worker", 1, 400, "[0]");
  CheckEnd(*other, 2);
  CHECK(Contains(other->standard_error(), "its device.ids are 1, and those of worker 0 are 2."));
  const auto fewer = start("worker", 1, 390);
  CheckEnd(*fewer, 2);
  CHECK(Contains(fewer->standard_error(), "data.train has 390 rows here, and 400 where the run began."));
  worker->Signal(SIGTERM);
  CheckEnd(*ps, 1);
  CHECK(Contains(ps->standard_error(), "applied once: 400 of 400 rows"));
}

TEST_CASE("failure: a worker that comes back with other rows is told of, and the run is not deterministic") {
  const struct {
    std::string rows, difference;
    const char* cache;
  } cases[] = {{Rows(400), "", "memory"},
               {Rows(390), "390 rows, and 400 before", "memory"},
               {Rows(400, "0.5,1,1"), "other labels than before", "memory"},
               {Rows(400, "0.25,1,0"), "other features than before", "memory"},
               {Rows(400, "0.25,1,0"), "other features than before", "none"}};
  for (const auto& [rows, difference, cache] : cases) {
    CAPTURE(difference);
    const Cluster cluster(1, 2,
                          "model: {kind: mlp, hidden: [400], outputs: 2}\n"
                          "data: {train: {format: csv, path: PATH, label: y}}\n"
                          "train: {mode: sync, batch_size: 100, steps: 1000}\n"
                          "hooks: {log_every_steps: 10}\nfailure: {detect_s: 2, worker_lost: wait}\n");
    const std::string result = cluster.directory() + "/result.json";
    const auto start = [&](const std::string& role, int index) {
      const std::string path = fmt::format("{}/{}.csv", cluster.directory(), index);
      return cluster.Start(role, index,
                           {"--result", result + role + std::to_string(index), "--set",
                            "data.train.path=" + path, "--set", std::string("data.cache=") + cache});
    };
    for (const int worker : {0, 1})
      WriteFile(fmt::format("{}/{}.csv", cluster.directory(), worker), Rows(400));
    const auto ps = start("ps", 0), worker = start("worker", 0);
    auto lost = start("worker", 1);
    REQUIRE(lost->WaitForLine("global step"));
    lost->Signal(SIGKILL);
    RunToEnd(*lost);
    WriteFile(cluster.directory() + "/1.csv", rows);
    lost = start("worker", 1);
    for (Process* task : {ps.get(), worker.get(), lost.get()}) CheckEnd(*task);
    const Json told = ReadResult(result + "ps0");
    CHECK(told.at("deterministic") == difference.empty());
    const std::string warnings = told.at("warnings").dump();
    CHECK(Contains(warnings, "with other rows of data.train: ") == !difference.empty());
    CHECK(Contains(warnings, difference));
  }
}

TEST_CASE("failure: a run that goes on from a checkpoint knows what rows each worker had") {
  for (const bool others : {false, true}) {
    CAPTURE(others);
    const Cluster cluster(1, 2,
                          "model: {kind: mlp, hidden: [4], outputs: 2}\n"
                          "data: {train: {format: csv, path: PATH, label: y}}\n"
                          "train: {mode: sync, batch_size: 100}\n");
    const std::string& directory = cluster.directory();
    WriteFile(directory + "/0.csv", Rows(400));
    WriteFile(directory + "/1.csv", Rows(400, "0.25,1,0"));
    const auto run = [&](int steps) {
      const auto start = [&](const std::string& role, int index) {
        return cluster.Start(
            role, index,
            {"--result", directory + "/" + role + ".json", "--set", "checkpoint.dir=" + directory + "/saved",
             "--set", fmt::format("train.steps={}", steps), "--set",
             fmt::format("data.train.path={}/{}.csv", directory, index)});
      };
      const auto ps = start("ps", 0), first = start("worker", 0), second = start("worker", 1);
      for (Process* const task : {ps.get(), first.get(), second.get()}) CheckEnd(*task);
      return ReadResult(directory + "/ps.json");
    };
    CHECK(run(10).at("deterministic") == true);
    if (others) WriteFile(directory + "/1.csv", Rows(400));  // those of worker 0
    const Json result = run(20);
    CHECK(result.at("deterministic") == !others);
    CHECK(Contains(result.at("warnings").dump(),
                   "came with other rows of data.train: other features than before") == others);
  }
}

TEST_CASE(
    "failure: a run that fails while it goes back tells the step it had reached and no damaged checkpoint") {
  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    const Cluster cluster(2, 1, EndlessJob() + "failure: {detect_s: 2, wait_s: 4}\n");
    const std::string result = cluster.directory() + "/result.json", dir = cluster.directory() + "/ckpt";
    const auto start = [&](const std::string& role, int index) {
      std::vector<std::string> more = {"--result", result + role + std::to_string(index), "--set",
                                       "checkpoint.dir=" + dir};
      if (role == "ps" && index == 0) more.insert(more.end(), {"--run", cluster.directory() + "/run"});
      return cluster.Start(role, index, more);
    };
    const auto ps = start("ps", 0), worker = start("worker", 0);
    auto lost = start("ps", 1);
    REQUIRE(worker->WaitForLine("local step       500"));
    lost->Signal(SIGKILL);
    RunToEnd(*lost);
    REQUIRE(ps->WaitForLine("; the run goes back to its newest checkpoint"));
    if (damaged) {
      std::filesystem::resize_file(dir + "/step-000000000/shard-1-of-2", 20);
      lost = start("ps", 1);
    }
    CheckEnd(*ps, damaged ? 1 : 4);
    const Json told = ReadResult(result + "ps0");
    CHECK(told.at("global_step").get<int64_t>() >= 500);
    CHECK(told.at("checkpoint") == (damaged ? Json(nullptr) : Json(dir + "/step-000000000")));
    const std::string shown = Run({"status", cluster.directory() + "/run"}).output;
    CHECK(Contains(shown, "checkpoint of step") == !damaged);
    if (damaged) RunToEnd(*lost);
    RunToEnd(*worker);
    const Json known = ReadResult(result + "worker0");
    if (damaged) CHECK(known.at("checkpoint").is_null());
  }
}

}  // namespace
}  // namespace dtrain::testing
