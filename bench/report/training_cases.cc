// Global steps per second of whole jobs, beside their limits, and of threads beside processes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/job.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kBatch = 100;  // of the configs

// Returns how many exchanges make one global step.
int64_t ExchangesPerStep(const Job& job) { return job.rounds ? job.workers : 1; }

// Measured: from the first runs of a job: the length of later runs, and the bytes of one exchange.
struct Measured {
  int64_t steps = 0;
  double bytes_per_exchange = 0;
};

// Computed from the difference of two runs, so that messages sent once in a run do not count.
Measured Measure(const Settings& settings, const Job& job) {
  const auto few = std::max<int64_t>(1, std::llround(job.steps_per_s * settings.seconds / 16));
  const JobResult first = RunJob(settings, job, few, {});
  const JobResult second = RunJob(settings, job, 3 * few, {});
  return {std::max<int64_t>(1, std::llround(second.steps_per_s * settings.seconds)),
          (second.bytes_sent - first.bytes_sent) / (second.global_step - first.global_step) /
              static_cast<double>(ExchangesPerStep(job))};
}

std::string LayerText(const std::vector<int64_t>& layers) {
  return fmt::format("{}", fmt::join(layers, ","));
}

std::vector<std::string> LimitFlags(const Job& job, const Measured& measured) {
  const double headers = measured.bytes_per_exchange - 2.0 * sizeof(float) * static_cast<double>(job.block());
  const std::string header = std::to_string(std::llround(headers / 2));
  std::vector<std::string> flags = {"--clients",        std::to_string(job.workers),
                                    "--open",           std::to_string(job.in_flight),
                                    "--request-header", header,
                                    "--reply-header",   header,
                                    "--parameters",     std::to_string(job.block()),
                                    "--block",          std::to_string(job.block()),
                                    "--batch",          std::to_string(kBatch)};
  if (job.rounds) flags.push_back("--rounds");
  if (!job.layers.empty()) flags.insert(flags.end(), {"--layers", LayerText(job.layers)});
  return flags;
}

std::vector<std::string> WithExchanges(std::vector<std::string> flags, int64_t exchanges) {
  flags.insert(flags.end(), {"--exchanges", std::to_string(std::max<int64_t>(1, exchanges))});
  return flags;
}

std::vector<Row> MeasureJob(const Settings& settings, const Job& job) {
  const char* const unit = job.rounds ? "rounds/s" : "global steps/s";
  const auto per_step = static_cast<double>(ExchangesPerStep(job));
  Row row = {job.name, job.what(), unit, job.to_reach, false, {}, {}, {}, {}};
  const Measured measured = Measure(settings, job);
  const std::vector<std::string> flags = LimitFlags(job, measured);
  const int64_t first_length = measured.steps * ExchangesPerStep(job) / 4 / job.workers;
  const Exchanged first = RunExchange(settings, kLimitProgram, WithExchanges(flags, first_length));
  const int64_t exchanges = std::llround(first.per_s * settings.seconds) / job.workers;
  const auto run_dtrain = [&] {
    const JobResult result = RunJob(settings, job, measured.steps, {});
    row.dtrain.push_back(result.steps_per_s);
    row.dtrain_bytes = result.bytes_sent / result.global_step / per_step;
  };
  const auto run_limit = [&] {
    const Exchanged limit = RunExchange(settings, kLimitProgram, WithExchanges(flags, exchanges));
    row.limit.push_back(limit.per_s / per_step);
    row.limit_bytes = limit.bytes;
  };
  TakeTurns(settings.rounds, run_dtrain, run_limit);
  return {row};
}

std::string InProcessName(const Job& job) { return "in_process_" + job.name; }

// Measures threads with processes as their limit: threads should not be slower.
std::vector<Row> MeasureInProcess(const Settings& settings, const Job& job) {
  Row row = {InProcessName(job),
             job.config + ".yaml: --in-process, beside processes",
             "global steps/s",
             "1",
             false,
             {},
             {},
             {},
             {}};
  const int64_t steps = Measure(settings, job).steps;
  TakeTurns(
      settings.rounds,
      [&] { row.dtrain.push_back(RunJob(settings, job, steps, {"--in-process"}).steps_per_s); },
      [&] { row.limit.push_back(RunJob(settings, job, steps, {}).steps_per_s); });
  return {row};
}

// A job of one worker as threads, and how large its step is in the loop that is its limit.
struct AloneJob {
  const char* name;
  std::vector<int64_t> layers;
  int64_t batch;
  const char* to_reach;
};

const std::vector<AloneJob>& AloneJobs() {
  static const std::vector<AloneJob> jobs = {{"softmax", {784, 10}, kBatch, "14000 steps/s"},
                                             {"linear", {1, 1}, 1, ""}};
  return jobs;
}

std::string AloneName(const AloneJob& job) { return fmt::format("in_process_{}_1", job.name); }

// Measures one worker with its ps as threads, beside one thread that only computes and applies.
std::vector<Row> MeasureAlone(const Settings& settings, const AloneJob& alone) {
  Job job = FindJob(alone.name);
  job.workers = 1;
  Row row = {AloneName(alone),
             job.config + ".yaml: --in-process, 1 worker, beside one thread without messages",
             "global steps/s",
             alone.to_reach,
             false,
             {},
             {},
             {},
             {}};
  const std::vector<std::string> threads = {"--in-process", "--set", "cluster.worker=[\"localhost:9302\"]"};
  const auto steps_of = [&](double per_s) {
    return std::max<int64_t>(1, std::llround(per_s * settings.seconds));
  };
  const int64_t steps = steps_of(RunJob(settings, job, steps_of(job.steps_per_s), threads).steps_per_s);
  const std::string parameters = std::to_string(ParameterCount(alone.layers));
  const std::vector<std::string> flags = {"--alone",
                                          "--layers",
                                          LayerText(alone.layers),
                                          "--batch",
                                          std::to_string(alone.batch),
                                          "--parameters",
                                          parameters,
                                          "--block",
                                          parameters};
  const auto run_limit = [&](int64_t exchanges) {
    return RunExchange(settings, kLimitProgram, WithExchanges(flags, exchanges)).per_s;
  };
  const int64_t exchanges = steps_of(run_limit(steps));
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(RunJob(settings, job, steps, threads).steps_per_s); },
      [&] { row.limit.push_back(run_limit(exchanges)); });
  return {row};
}

}  // namespace

std::vector<Case> TrainingCases(const Settings& settings) {
  std::vector<Case> cases;
  for (const Job& job : Jobs()) cases.push_back({{job.name}, [&] { return MeasureJob(settings, job); }});
  for (const char* name : {"softmax", "linear", "mlp"}) {
    const Job& job = FindJob(name);
    cases.push_back({{InProcessName(job)}, [&] { return MeasureInProcess(settings, job); }});
  }
  for (const AloneJob& job : AloneJobs()) {
    cases.push_back({{AloneName(job)}, [&] { return MeasureAlone(settings, job); }});
  }
  return cases;
}

}  // namespace dtrain::bench
