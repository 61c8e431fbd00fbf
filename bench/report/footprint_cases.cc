// How soon a job takes its first step, and how much memory its tasks use.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/report/job.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kShortRun = 1000;     // steps
constexpr int64_t kMemorySteps = 3000;  // more than an epoch
constexpr double kMib = 1 << 20;

std::vector<Row> MeasureStartup(const Settings& settings) {
  Row row = {
      "startup", "linear_regression.yaml: exec to first step, 3 processes", "s", "0.2", true, {}, {}, {}, {}};
  for (int round = 0; round < settings.rounds; ++round) {
    row.dtrain.push_back(RunJob(settings, FindJob("linear"), kShortRun, {}).startup_s);
  }
  return {row};
}

std::unique_ptr<Process> StartTask(const Settings& settings, const Job& job, const std::string& cluster,
                                   const std::string& role, int64_t index) {
  std::vector<std::string> command = {settings.Program("cmd/dtrain")};
  const std::vector<std::string> flags = JobFlags(settings, job, kMemorySteps);
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"--set", cluster, "--role", role, "--index", std::to_string(index)});
  return std::make_unique<Process>(command, fmt::format("{}/{}-{}", settings.scratch, role, index));
}

// Starts the tasks one by one and not by `dtrain local`, so that the kernel reports each one's peak.
void RunTasks(const Settings& settings, const Job& job, Row* ps_row, Row* worker_row) {
  const std::string cluster = fmt::format("cluster.ps=[\"127.0.0.1:{}\"]", FreePort());
  const std::unique_ptr<Process> ps = StartTask(settings, job, cluster, "ps", 0);
  std::vector<std::unique_ptr<Process>> workers;
  for (int64_t i = 0; i < job.workers; ++i) {
    workers.push_back(StartTask(settings, job, cluster, "worker", i));
  }
  int64_t largest = 0;
  for (const auto& worker : workers) largest = std::max(largest, worker->Wait());
  ps_row->dtrain.push_back(static_cast<double>(ps->Wait()) / kMib);
  worker_row->dtrain.push_back(static_cast<double>(largest) / kMib);
}

std::vector<Row> MeasureMemory(const Settings& settings) {
  Row ps = {"memory_ps", "mnist_softmax.yaml: peak memory of the ps", "MiB", "20", true, {}, {}, {}, {}};
  Row worker = {"memory_worker",
                "mnist_softmax.yaml: peak memory of the largest worker",
                "MiB",
                "20 + 45 of images",
                true,
                {},
                {},
                {},
                {}};
  for (int round = 0; round < settings.rounds; ++round) {
    RunTasks(settings, FindJob("softmax"), &ps, &worker);
  }
  return {ps, worker};
}

}  // namespace

std::vector<Case> FootprintCases(const Settings& settings) {
  return {{{"startup"}, [&] { return MeasureStartup(settings); }},
          {{"memory_ps", "memory_worker"}, [&] { return MeasureMemory(settings); }}};
}

}  // namespace dtrain::bench
