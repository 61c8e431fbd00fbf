// data.split: feed with real processes: only worker 0 has data files, and everybody learns from them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

// y = 2a - b + 3, without noise.
std::string WriteTable(const std::string& directory) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 600; ++i) {
    const double a = (i % 20) * 0.1 - 1, b = (i % 17) * 0.1 - 1;
    text += fmt::format("{},{},{}\n", a, b, 2 * a - b + 3);
  }
  WriteFile(directory + "/table.csv", text);
  return directory + "/table.csv";
}

std::string TableJob(const std::string& train, int64_t detect_s = kDetect.count(), int batch_size = 16) {
  return "model: {kind: linear, inputs: 2}\n"
         "data: {train: {format: csv, path: table.csv, label: y}, split: feed, scale: unit}\n"
         "train: {" +
         fmt::format("batch_size: {}, {}}}\nfailure: {{detect_s: {}}}\nhooks: {{log_every_steps: 100}}\n",
                     batch_size, train, detect_s);
}

// A cluster of which worker 0 alone finds the table.
struct FedCluster {
  Cluster cluster;
  ReservedPort port;  // worker 0's
  const std::string table;
  std::vector<std::unique_ptr<Process>> ps;
  std::vector<std::unique_ptr<Process>> workers;

  FedCluster(int ps_count, int worker_count, const std::string& train, int64_t detect_s = kDetect.count(),
             int batch_size = 16)
      : FedCluster(ps_count, worker_count, WriteTable(NewDirectory()),
                   TableJob(train, detect_s, batch_size)) {}
  // A job on this file.
  FedCluster(int ps_count, int worker_count, std::string file, const std::string& job)
      : cluster(ps_count, worker_count, job), table(std::move(file)), worker_count_(worker_count) {
    for (int i = 0; i < ps_count; ++i) ps.push_back(Start("ps", i));
    for (int i = 0; i < worker_count; ++i) workers.push_back(Start("worker", i));
  }
  std::unique_ptr<Process> Start(const std::string& role, int index,
                                 const std::vector<std::string>& more = {}) const {
    std::string workers = port.address();
    for (int i = 1; i < worker_count_; ++i) workers += fmt::format("\", \"localhost:{}", i);
    const bool has_data = role == "worker" && index == 0;
    std::vector<std::string> arguments = {
        "--result", Result(role, index),
        "--set",    fmt::format("cluster.worker=[\"{}\"]", workers),
        "--set",    "data.train.path=" + (has_data ? table : "/nowhere/table.csv")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cluster.Start(role, index, arguments);
  }
  std::string Result(const std::string& role, int index) const {
    return fmt::format("{}/{}{}.json", cluster.directory(), role, index);
  }

 private:
  const int worker_count_;
};

void CheckDone(const FedCluster& run) {
  CheckEnds(run.workers);
  CheckEnds(run.ps);
}

TEST_CASE("feed: workers without data files learn what worker 0 reads") {
  FedCluster run(2, 3, "epochs: 60, optimizer: {kind: adam, learning_rate: 0.05}");
  CheckDone(run);
  const Json result = ReadResult(run.Result("worker", 1));
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 60 * 38);
  CHECK(result.at("local_steps") == Json({60 * 13, 60 * 13, 60 * 12}));
  CHECK(result.at("examples") == 60 * 600);
  CHECK(result.at("final_loss").get<double>() < 0.01);
  CHECK(Contains(run.workers[0]->standard_error(), "listening at " + run.port.address()));
  CHECK(Contains(run.workers[2]->standard_error(), "all batches come from worker 0 (" + run.port.address()));
}

// Weighted rows of Vowpal Wabbit, in rounds.
std::string SparseJob(const std::string& split) {
  return "model: {kind: fm, factors: 4}\n"
         "data: {train: {format: vw, path: rows.vw}, hash_bits: 12, class_weights: [\"1=2\"], split: " +
         split +
         "}\ntrain: {mode: sync, batch_size: 16, epochs: 8, optimizer: {kind: adagrad, learning_rate: "
         "0.2}}\n";
}

void WriteSparse(const std::string& path) {
  std::string text;
  for (int row = 0; row < 500; ++row) {
    text += fmt::format("{} {} |a x{} |b y{}:{} z{}\n", row % 7 < 3 ? 1 : 0, 1 + row % 3, row % 7, row % 11,
                        0.25 * (row % 5), row % 13);
  }
  WriteFile(path, text);
}

TEST_CASE("feed: workers without data files learn sparse rows with weights to the bits of split: shard") {
  const LocalJob shard(SparseJob("shard"));
  WriteSparse(shard.directory + "/rows.vw");
  const Json expected = RunLocal(shard.config, {"--ps", "2", "--workers", "3"});
  REQUIRE(expected.is_object());
  FedCluster run(2, 3, shard.directory + "/rows.vw", SparseJob("feed"));
  CheckDone(run);
  const Json result = ReadResult(run.Result("worker", 1));
  CHECK(result.at("model_crc") == expected.at("model_crc"));
  CHECK(result.at("examples") == 8 * 500);
}

TEST_CASE("feed: worker 0 of dtrain local reads standard input for all") {
  const LocalJob job(SparseJob("feed"));
  WriteSparse(job.directory + "/rows.vw");
  const Json expected = RunLocal(job.config, {"--workers", "2"});
  REQUIRE(expected.is_object());
  const std::string told = OutputOf(
      fmt::format("cmd/dtrain local --run none --config {} --workers 2 --set data.train.path=- --result {} "
                  "<{}/rows.vw 2>&1; true",
                  job.config, job.result, job.directory));
  CAPTURE(told);
  CHECK(ReadResult(job.result)["model_crc"] == expected["model_crc"]);
}

TEST_CASE("feed: worker 0 killed in the middle ends the run with 4 everywhere") {
  FedCluster run(1, 3, "steps: 1000000000000");
  for (const auto& worker : run.workers) REQUIRE(worker->WaitForLine("global step"));
  run.workers[0]->Signal(SIGKILL);
  const std::string lost = "worker 0 (" + run.port.address();
  CheckSurvivor(*run.ps[0], lost, run.Result("ps", 0));
  for (int i : {1, 2}) CheckSurvivor(*run.workers[i], lost, run.Result("worker", i));
}

TEST_CASE("feed: worker 0 that is killed and comes back at once feeds on") {
  FedCluster run(1, 2, "mode: sync, steps: 5000", 20);
  REQUIRE(run.workers[0]->WaitForLine("local step"));
  run.workers[0]->Signal(SIGKILL);
  REQUIRE(run.workers[0]->WaitForEnd());
  const auto again = run.Start("worker", 0);
  CheckEnds(std::vector<Process*>{again.get(), run.workers[1].get(), run.ps[0].get()});
  CHECK(ReadResult(run.Result("worker", 1)).at("global_step") == 5000);
}

// Sanitizers keep what is freed, and memory of their own for it.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
int64_t ResidentKiB(const Process& process) {
  std::ifstream status(fmt::format("/proc/{}/status", process.pid()));
  std::string line;
  while (std::getline(status, line)) {
    if (line.compare(0, 6, "VmRSS:") == 0) return std::stoll(line.substr(6));
  }
  return 0;
}

TEST_CASE("feed: memory stays flat at worker 0 and at those that it feeds") {
  // A batch is 2.4 KB: what leaks one a step has grown by 13 MB at the end.
  FedCluster run(1, 3, "steps: 1000000000000", kDetect.count(), /*batch_size=*/200);
  for (const auto& worker : run.workers) REQUIRE(worker->WaitForLine("local step       300"));
  std::vector<int64_t> early;
  for (const auto& worker : run.workers) early.push_back(ResidentKiB(*worker));
  for (const auto& worker : run.workers) REQUIRE(worker->WaitForLine("local step      6000"));
  for (size_t i = 0; i < run.workers.size(); ++i) {
    CAPTURE(i);
    REQUIRE(early[i] > 0);
    CHECK(ResidentKiB(*run.workers[i]) < early[i] + 4096);
  }
}
#endif

TEST_CASE("feed: a worker without data and without model.inputs is told what to write") {
  const FedCluster run(1, 1, "steps: 10");
  CheckDone(run);
  const auto blind =
      run.Start("worker", 0, {"--set", "model.inputs=null", "--set", "data.train.path=/nowhere/t"});
  CHECK(RunToEnd(*blind) == 2);
  CHECK(Contains(blind->standard_error(), "/nowhere/t: cannot be opened: No such file or directory"));
  CHECK(Contains(blind->standard_error(), "model.inputs"));
}

TEST_CASE("feed: check and plan say who needs data and what travels") {
  const std::string directory = NewDirectory();
  WriteTable(directory);
  WriteFile(directory + "/job.yaml", TableJob("epochs: 2"));
  Process check({"check", "--config", directory + "/job.yaml"});
  CHECK(RunToEnd(check) == 0);
  CHECK(Contains(check.standard_output(), "only worker 0 needs it"));
  Process plan({"plan", "--config", directory + "/job.yaml", "--set", "train.epochs=null", "--set",
                "train.steps=100"});
  CHECK(RunToEnd(plan) == 0);
  CAPTURE(plan.standard_output());
  CHECK(Contains(plan.standard_output(), "feed: for each batch of another worker, worker 0 receives "));
  CHECK(Contains(plan.standard_output(), "; in a run about "));
}

}  // namespace
}  // namespace dtrain::testing
