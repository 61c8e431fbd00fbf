// Global steps per second of whole jobs, by `dtrain local` and by tasks over TCP, beside their limits; of
// threads beside processes, and of TCP with keys beside TCP without.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/report/job.h"
#include "bench/report/rows.h"
#include "net/codec.h"
#include "trainer/model/layout.h"
#include "trainer/peer/conversation.h"

namespace dtrain::bench {
namespace {

// 64 MiB of parameters, to the last block.
const Job kStream = {"stream_push",
                     "mnist_softmax",
                     1,
                     {784, 21372},
                     1,
                     10,
                     "",
                     "",
                     false,
                     1,
                     {"model.outputs=21372", "train.batch_size=1"}};

// Returns the floats of a payload frame; 0 if they fit into the header.
int64_t BlockOf(const Job& job) {
  const int64_t parameters = ParameterCount(job.layers);
  if (static_cast<size_t>(parameters) * sizeof(float) <= net::kInlineBytes) return 0;
  return std::min(parameters, kBlockValues);
}

int64_t BlocksOf(const Job& job) {
  const int64_t block = BlockOf(job);
  return block == 0 ? 1 : (ParameterCount(job.layers) + block - 1) / block;
}

// Returns how many exchanges make one global step.
int64_t ExchangesPerStep(const Job& job) { return job.rounds ? job.workers : BlocksOf(job); }

// Measured: from the first runs of a job: the length of later runs, and the bytes of one exchange, which do
// not hold what is sent once in a run.
struct Measured {
  int64_t steps = 0;
  double bytes_per_exchange = 0;
  double bytes_once = 0;  // of a run
};

Measured Measure(const Settings& settings, const Job& job) {
  const std::string dtrain = settings.Program("cmd/dtrain");
  const auto few = std::max<int64_t>(1, std::llround(job.steps_per_s * settings.seconds / 16));
  const JobResult first = RunJob(settings, dtrain, job, few);
  const JobResult second = RunJob(settings, dtrain, job, 3 * few);
  const double per_step = (second.bytes_sent - first.bytes_sent) / (second.global_step - first.global_step);
  return {std::max<int64_t>(1, std::llround(second.steps_per_s * settings.seconds)),
          per_step / static_cast<double>(ExchangesPerStep(job)),
          first.bytes_sent - per_step * first.global_step};
}

std::string LayerText(const std::vector<int64_t>& layers) {
  return fmt::format("{}", fmt::join(layers, ","));
}

std::vector<std::string> LimitFlags(const Job& job, const Measured& measured) {
  const int64_t block = BlockOf(job), blocks = BlocksOf(job);
  const double headers = measured.bytes_per_exchange - 2.0 * sizeof(float) * static_cast<double>(block);
  const std::string header = std::to_string(std::llround(headers / 2));
  std::vector<std::string> flags = {
      "--clients",        std::to_string(job.workers),
      "--open",           std::to_string(blocks == 1 ? job.in_flight : kOpenBlocks),
      "--request-header", header,
      "--reply-header",   header,
      "--parameters",     std::to_string(block * blocks),
      "--block",          std::to_string(block),
      "--batch",          std::to_string(job.batch)};
  if (job.rounds) flags.push_back("--rounds");
  if (!job.layers.empty()) flags.insert(flags.end(), {"--layers", LayerText(job.layers)});
  return flags;
}

std::vector<std::string> WithExchanges(std::vector<std::string> flags, int64_t exchanges) {
  flags.insert(flags.end(), {"--exchanges", std::to_string(std::max<int64_t>(1, exchanges))});
  return flags;
}

std::function<Rate()> MakeLimit(const Settings& settings, const Job& job, const Measured& measured) {
  const std::vector<std::string> flags = LimitFlags(job, measured);
  const int64_t first_length = measured.steps * ExchangesPerStep(job) / 4 / job.workers;
  const Exchanged first = RunExchange(settings, kLimitProgram, WithExchanges(flags, first_length));
  const int64_t exchanges = std::llround(first.per_s * settings.seconds) / job.workers;
  return [&settings, &job, all_flags = WithExchanges(flags, exchanges)] {
    const Exchanged limit = RunExchange(settings, kLimitProgram, all_flags);
    return Rate{limit.per_s / static_cast<double>(ExchangesPerStep(job)), limit.bytes};
  };
}

Row RowOf(const Job& job, const std::string& name, const std::string& what, const std::string& to_reach) {
  return {name, what, job.rounds ? "rounds/s" : "global steps/s", to_reach, false, {}, {}, {}, {}};
}

std::vector<Row> MeasureJob(const Settings& settings, const Job& job) {
  Row row = RowOf(job, job.name, job.what(), job.to_reach);
  const Measured measured = Measure(settings, job);
  const auto dtrain = [&](const std::string& program) {
    const JobResult result = RunJob(settings, program, job, measured.steps);
    const double bytes = (result.bytes_sent - measured.bytes_once) / result.global_step;
    return Rate{result.steps_per_s, bytes / static_cast<double>(ExchangesPerStep(job))};
  };
  MeasureSides(
      settings, dtrain, [&] { return MakeLimit(settings, job, measured); }, &row);
  return {row};
}

// Measures the job with `flags` beside `plain`, which is the same job without what is measured.
std::vector<Row> MeasureBeside(const Settings& settings, const Job& job,
                               const std::vector<std::string>& flags, const Job& plain,
                               const char* plain_name, Row row) {
  const int64_t steps = Measure(settings, plain).steps;
  const auto run_plain = [&] {
    return Rate{RunJob(settings, settings.Program("cmd/dtrain"), plain, steps).steps_per_s, {}};
  };
  MeasureSides(
      settings,
      [&](const std::string& program) {
        return Rate{RunJob(settings, program, job, steps, flags).steps_per_s, {}};
      },
      [&] { return run_plain; }, &row, plain_name);
  return {row};
}

Case InProcessCase(const Settings& settings, const Job& job) {
  const Row row = RowOf(job, "in_process_" + job.name, job.config + ".yaml: --in-process", "1");
  return {{row.name},
          [&settings, &job, row] {
            return MeasureBeside(settings, job, {"--in-process"}, job, "processes", row);
          },
          true};
}

Case KeysCase(const Settings& settings, const Job& without) {
  Job job = without;
  job.wire = Wire::kTcpWithKeys;
  const Row row = RowOf(job, job.name + "_keys", job.what(), "0.82");
  return {
      {row.name},
      [&settings, job, without, row] { return MeasureBeside(settings, job, {}, without, "without", row); },
      true};
}

// A job of one worker as threads, and how large its step is in the loop that is its limit.
struct AloneJob {
  const char* name;
  std::vector<int64_t> layers;
  int64_t batch;
  const char* to_reach;
};

const std::vector<AloneJob>& AloneJobs() {
  static const std::vector<AloneJob> jobs = {{"softmax", {784, 10}, 100, "14000 steps/s"},
                                             {"linear", {1, 1}, 1, ""}};
  return jobs;
}

std::string AloneName(const AloneJob& job) { return fmt::format("in_process_{}_1", job.name); }

// Measures one worker with its ps as threads, beside one thread that only computes and applies.
std::vector<Row> MeasureAlone(const Settings& settings, const AloneJob& alone) {
  Job job = FindJob(alone.name);
  job.workers = 1;
  Row row = RowOf(job, AloneName(alone), job.config + ".yaml: --in-process, 1 worker", alone.to_reach);
  const std::vector<std::string> threads = {"--in-process", "--set", "cluster.worker=[\"localhost:9302\"]"};
  const auto steps_of = [&](double per_s) {
    return std::max<int64_t>(1, std::llround(per_s * settings.seconds));
  };
  const auto run = [&](const std::string& program, int64_t steps) {
    return RunJob(settings, program, job, steps, threads).steps_per_s;
  };
  const int64_t steps = steps_of(run(settings.Program("cmd/dtrain"), steps_of(job.steps_per_s)));
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
  const auto make_limit = [&] {
    return [&, exchanges = steps_of(run_limit(steps))] { return Rate{run_limit(exchanges), {}}; };
  };
  MeasureSides(
      settings,
      [&](const std::string& program) {
        return Rate{run(program, steps), {}};
      },
      make_limit, &row, "one thread without messages");
  return {row};
}

}  // namespace

std::vector<Case> TrainingCases(const Settings& settings) {
  std::vector<Case> cases;
  std::vector<Job> jobs = Jobs();
  for (const Job& job : Jobs()) jobs.push_back(OverTcp(job));
  jobs.push_back(OverTcp(kStream));
  for (const Job& job : jobs) {
    cases.push_back({{job.name}, [&settings, job] { return MeasureJob(settings, job); }, true});
  }
  cases.push_back(KeysCase(settings, OverTcp(FindJob("softmax"))));
  for (const char* name : {"softmax", "linear", "mlp"}) {
    cases.push_back(InProcessCase(settings, FindJob(name)));
  }
  for (const AloneJob& job : AloneJobs()) {
    cases.push_back({{AloneName(job)}, [&] { return MeasureAlone(settings, job); }, true});
  }
  return cases;
}

}  // namespace dtrain::bench
