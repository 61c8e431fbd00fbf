// How soon a job takes its first step, and how much memory its tasks use.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

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
    row.dtrain.push_back(
        RunJob(settings, settings.Program("cmd/dtrain"), FindJob("linear"), kShortRun).startup_s);
  }
  return {row};
}

// Starts the tasks one by one and not by `dtrain local`, so that the kernel reports each one's peak.
void RunTasks(const Settings& settings, const Job& job, Row* ps_row, Row* worker_row) {
  std::vector<std::string> command = JobFlags(settings, job, kMemorySteps);
  command.insert(command.begin(), settings.Program("cmd/dtrain"));
  const Tasks tasks = StartTasks(settings, std::move(command), job.workers);
  int64_t largest = 0;
  for (const auto& worker : tasks.workers) largest = std::max(largest, worker->Wait());
  ps_row->dtrain.push_back(static_cast<double>(tasks.ps->Wait()) / kMib);
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

constexpr int64_t kFewRows = 1'000'000;
constexpr int64_t kManyRows = 100'000'000;

// Trains on so many rows that a command prints. Returns the peak memory of ps and worker together, as
// threads.
double PeakMibOfRows(const Settings& settings, int64_t rows) {
  const std::string dtrain = settings.Program("cmd/dtrain");
  const std::string config = fmt::format("{}/piped.yaml", settings.scratch);
  std::ofstream(config) << fmt::format(
      "model: {{kind: linear, inputs: 10}}\n"
      "data: {{train: {{format: csv, path: \"exec:{} synth linear --features 10 --rows {}\", label: y}}, "
      "cache: none}}\n"
      "train: {{batch_size: 100, epochs: 1}}\nhooks: {{log_every_steps: 0}}\n",
      dtrain, rows);
  Process process({dtrain, "local", "--run", "none", "--in-process", "--config", config},
                  fmt::format("{}/piped-{}", settings.scratch, rows));
  return static_cast<double>(process.Wait()) / kMib;
}

// One round: it takes minutes.
std::vector<Row> MeasurePiped(const Settings& settings) {
  Row row = {"memory_piped",
             "data.cache: none: memory that 100,000,000 rows need above 1,000,000",
             "MiB",
             "10",
             true,
             {},
             {},
             {},
             {}};
  row.dtrain.push_back(PeakMibOfRows(settings, kManyRows) - PeakMibOfRows(settings, kFewRows));
  return {row};
}

}  // namespace

std::vector<Case> FootprintCases(const Settings& settings) {
  return {{{"startup"}, [&] { return MeasureStartup(settings); }},
          {{"memory_ps", "memory_worker"}, [&] { return MeasureMemory(settings); }},
          {{"memory_piped"}, [&] { return MeasurePiped(settings); }}};
}

}  // namespace dtrain::bench
