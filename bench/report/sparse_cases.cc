// Rows per second of sparse models, beside a limit that moves the same bytes, sorts as many keys, and reads
// and updates as many rows of a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/report/job.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"
#include "trainer/model/layout.h"

namespace dtrain::bench {
namespace {

constexpr char kLimitRows[] = "bench/limit/limit_rows";
constexpr int64_t kFeatures = 39;       // of a row
constexpr int64_t kWidth = 10'000'000;  // features that there are
constexpr int64_t kRows = 131'072;      // of the file; the batches go round
constexpr int64_t kFirstHeader = 64;    // bytes, of a limit's first run
constexpr int64_t kSmallestHeader = 16;

struct SparseJob {
  std::string name;
  int64_t batch = 128;
  int64_t in_flight = 1;
  double steps_per_s = 3000;  // estimate

  std::string what() const {
    return fmt::format("{} x {} of 10 million, 1 ps + 1 worker, in_flight {}", batch, kFeatures, in_flight);
  }
  int64_t blocks() const {
    ModelConfig model;
    model.kind = ModelKind::kLogistic;
    model.inputs = kWidth;
    model.outputs = 1;
    return TableLayoutOf(model, 1, batch).table->blocks_of_ps();
  }
};

// Writes rows of features that are drawn uniformly, each with the value 1, once for all cases.
std::string FileOfRows(const Settings& settings) {
  const std::string path = settings.scratch + "/rows.svm";
  if (std::filesystem::exists(path)) return path;
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> feature(1, kWidth);
  std::ofstream file(path);
  std::vector<int64_t> features(kFeatures);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t& one : features) one = feature(random);
    std::sort(features.begin(), features.end());
    file << fmt::format("{} {}:1\n", random() % 2, fmt::join(features, ":1 "));
  }
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
  return path;
}

JobResult RunSparse(const Settings& settings, const SparseJob& job, int64_t steps) {
  const std::string path = settings.scratch + "/" + job.name;
  std::ofstream(path + ".yaml") << fmt::format(
      "model: {{kind: logistic, inputs: {}}}\n"
      "data: {{train: {{format: libsvm, path: {}}}}}\n"
      "train: {{batch_size: {}, in_flight: {}, steps: {}, optimizer: {{kind: sgd, learning_rate: 0.05}}}}\n"
      "hooks: {{log_every_steps: 0}}\n"
      "eval: {{at_end: false}}\n",
      kWidth, FileOfRows(settings), job.batch, job.in_flight, steps);
  OutputOf({settings.Program("cmd/dtrain"), "local", "--run", "none", "--config", path + ".yaml", "--ps", "1",
            "--workers", "1", "--result", path + ".json"},
           path);
  const auto result = nlohmann::json::parse(ReadFile(path + ".json"));
  return {result.at("steps_per_s"), result.at("startup_s"), result.at("bytes_sent"),
          result.at("global_step")};
}

std::vector<std::string> LimitFlags(const SparseJob& job, int64_t header, double exchanges) {
  const std::string bytes = std::to_string(std::max(kSmallestHeader, header));
  return {"--exchanges",      std::to_string(std::max<int64_t>(1, std::llround(exchanges))),
          "--open",           std::to_string(job.in_flight),
          "--batch",          std::to_string(job.batch),
          "--features",       std::to_string(kFeatures),
          "--rows",           std::to_string(kWidth),
          "--used-rows",      std::to_string(kWidth),
          "--pool",           std::to_string(kRows),
          "--blocks",         std::to_string(job.blocks()),
          "--request-header", bytes,
          "--reply-header",   bytes};
}

std::vector<Row> MeasureSparse(const Settings& settings, const SparseJob& job) {
  Row row = {job.name, job.what(), "rows/s", "0.6", false, {}, {}, {}, {}};
  const JobResult first = RunSparse(settings, job, std::llround(job.steps_per_s * settings.seconds / 4));
  const int64_t steps = std::max<int64_t>(1, std::llround(first.steps_per_s * settings.seconds));
  const Exchanged probe = RunExchange(settings, kLimitRows,
                                      LimitFlags(job, kFirstHeader, job.steps_per_s * settings.seconds / 4));
  const double more = first.bytes_sent / first.global_step - probe.bytes;
  const int64_t header = kFirstHeader + std::llround(more / 2 / static_cast<double>(job.blocks()));
  const std::vector<std::string> flags = LimitFlags(job, header, probe.per_s * settings.seconds);
  const auto batch = static_cast<double>(job.batch);
  const auto run_dtrain = [&] {
    const JobResult result = RunSparse(settings, job, steps);
    row.dtrain.push_back(result.steps_per_s * batch);
    row.dtrain_bytes = result.bytes_sent / result.global_step;
  };
  const auto run_limit = [&] {
    const Exchanged limit = RunExchange(settings, kLimitRows, flags);
    row.limit.push_back(limit.per_s * batch);
    row.limit_bytes = limit.bytes;
  };
  TakeTurns(settings.rounds, run_dtrain, run_limit);
  return {row};
}

const std::vector<SparseJob>& SparseJobs() {
  static const std::vector<SparseJob> jobs = {
      {"sparse_128", 128, 1, 3000},
      {"sparse_128_in_flight_2", 128, 2, 5000},
      {"sparse_4096", 4096, 1, 150},
      {"sparse_4096_in_flight_2", 4096, 2, 200},
  };
  return jobs;
}

}  // namespace

std::vector<Case> SparseCases(const Settings& settings) {
  std::vector<Case> cases;
  for (const SparseJob& job : SparseJobs()) {
    cases.push_back({{job.name}, [&] { return MeasureSparse(settings, job); }});
  }
  return cases;
}

}  // namespace dtrain::bench
