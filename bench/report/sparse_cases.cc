// Rows per second of sparse models, by `dtrain local` and by tasks over TCP, beside a limit that moves the
// same bytes, sorts as many keys, and reads and updates as many rows of a table; of wide & deep models also
// makes the products of the layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string_view>

#include "bench/report/job.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"
#include "trainer/config/model_config.h"
#include "trainer/model/layout.h"

namespace dtrain::bench {
namespace {

constexpr char kLimitRows[] = "bench/limit/limit_rows";
constexpr int64_t kRows = 131'072;    // of the files; the batches go round
constexpr int64_t kFirstHeader = 64;  // bytes, of a limit's first run
constexpr int64_t kSmallestHeader = 16;

// The job of sparse_*: a logistic model of features that are drawn uniformly.
constexpr int64_t kFeatures = 39;       // of a row
constexpr int64_t kWidth = 10'000'000;  // features that there are

// The job of wide_deep_*, as in bench/wide_deep.py: rows of `dtrain synth criteo`, and a model of embeddings
// beside the numbers of a row.
constexpr int64_t kColumns = 26, kNumbers = 13, kHashBits = 18, kEmbedding = 8;
const std::vector<int64_t> kLayers = {kColumns * kEmbedding + kNumbers, 64, 32, 1};

struct SparseJob {
  std::string name;
  bool wide_deep = false;
  int64_t batch = 128;
  int64_t in_flight = 1;
  double steps_per_s = 3000;  // estimate
  Wire wire = Wire::kLocal;
  const char* to_reach = "0.6";

  std::string what() const {
    return fmt::format("{}, 1 ps + 1 worker, in_flight {}{}",
                       wide_deep ? fmt::format("wide & deep, {} rows of criteo", batch)
                                 : fmt::format("{} x {} of 10 million", batch, kFeatures),
                       in_flight, WireText(wire));
  }
  int64_t blocks() const {
    ModelConfig model;
    model.kind = wide_deep ? ModelKind::kWideDeep : ModelKind::kLogistic;
    model.inputs = wide_deep ? kColumns << kHashBits : kWidth;
    model.outputs = 1;
    model.embedding = kEmbedding;
    return TableLayoutOf(model, 1, batch).table->blocks_of_ps();
  }
  int64_t messages() const { return blocks() + (wide_deep ? 1 : 0); }
};

// Calls `write` with the path of a file that is written once for all cases.
std::string FileOnce(const Settings& settings, const char* name,
                     const std::function<void(const std::string&)>& write) {
  std::string path = settings.scratch + "/" + name;
  if (!std::filesystem::exists(path)) write(path);
  return path;
}

void CheckWritten(std::ofstream& file, const std::string& path) {
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
}

// Rows of features that are drawn uniformly, each with the value 1.
void WriteUniformRows(const std::string& path) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> feature(1, kWidth);
  std::ofstream file(path);
  std::vector<int64_t> features(kFeatures);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t& one : features) one = feature(random);
    std::sort(features.begin(), features.end());
    file << fmt::format("{} {}:1\n", random() % 2, fmt::join(features, ":1 "));
  }
  CheckWritten(file, path);
}

std::string CriteoRows(const Settings& settings) {
  return FileOnce(settings, "criteo.tsv", [&](const std::string& path) {
    OutputOf(
        {settings.Program("cmd/dtrain"), "synth", "criteo", "--rows", std::to_string(kRows), "--out", path},
        path);
  });
}

// The features of the same rows for the limit. They are not dtrain's, but as many are the same in a batch.
std::string CriteoFeatures(const Settings& settings) {
  return FileOnce(settings, "criteo.ids", [&](const std::string& path) {
    std::ifstream rows(CriteoRows(settings));
    std::ofstream file(path, std::ios::binary);
    std::vector<uint32_t> ids(kColumns);
    for (std::string line; std::getline(rows, line);) {
      std::string_view rest = line;
      for (uint32_t column = kColumns; column-- > 0;) {
        const size_t tab = rest.rfind('\t');
        const size_t hash = std::hash<std::string_view>()(rest.substr(tab + 1));
        ids[column] = column << kHashBits | (static_cast<uint32_t>(hash) & ((1u << kHashBits) - 1));
        rest = rest.substr(0, tab);
      }
      file.write(reinterpret_cast<const char*>(ids.data()), kColumns * sizeof(uint32_t));
    }
    CheckWritten(file, path);
  });
}

std::string ModelAndData(const Settings& settings, const SparseJob& job) {
  if (!job.wide_deep) {
    return fmt::format(
        "model: {{kind: logistic, inputs: {}}}\n"
        "data: {{train: {{format: libsvm, path: {}}}}}\n",
        kWidth, FileOnce(settings, "rows.svm", WriteUniformRows));
  }
  return fmt::format(
      "model: {{kind: wide_deep, embedding: {}, hidden: [{}, {}], activation: relu, init: {{stddev: "
      "0.01}}}}\n"
      "data: {{train: {{format: criteo, path: {}}}, hash_bits: {}, numbers: plain, scale: standard}}\n",
      kEmbedding, kLayers[1], kLayers[2], CriteoRows(settings), kHashBits);
}

JobResult RunSparse(const Settings& settings, const std::string& program, const SparseJob& job,
                    int64_t steps) {
  const std::string config = settings.scratch + "/" + job.name + ".yaml";
  std::ofstream(config)
      << ModelAndData(settings, job)
      << fmt::format(
             "cluster: {{ps: [\"localhost:1\"], worker: [\"localhost:2\"]}}\n"
             "train: {{batch_size: {}, in_flight: {}, steps: {}, optimizer: {{kind: {}}}}}\n"
             "hooks: {{log_every_steps: 0}}\n"
             "eval: {{at_end: false}}\n",
             job.batch, job.in_flight, steps,
             job.wide_deep ? "adagrad, learning_rate: 0.1, initial_accumulator: 1e-6"
                           : "sgd, learning_rate: 0.05");
  return RunDtrain(settings, program, job.wire, 1, {"--config", config});
}

std::vector<std::string> LimitFlags(const Settings& settings, const SparseJob& job, int64_t header,
                                    double exchanges) {
  const std::string bytes = std::to_string(std::max(kSmallestHeader, header));
  const std::string rows = std::to_string(job.wide_deep ? kColumns << kHashBits : kWidth);
  std::vector<std::string> flags = {
      "--exchanges",      std::to_string(std::max<int64_t>(1, std::llround(exchanges))),
      "--open",           std::to_string(job.in_flight),
      "--batch",          std::to_string(job.batch),
      "--features",       std::to_string(job.wide_deep ? kColumns : kFeatures),
      "--rows",           rows,
      "--pool",           std::to_string(kRows),
      "--blocks",         std::to_string(job.blocks()),
      "--request-header", bytes,
      "--reply-header",   bytes};
  if (!job.wide_deep) {
    flags.insert(flags.end(), {"--used-rows", rows});
  } else {
    flags.insert(flags.end(), {"--ids", CriteoFeatures(settings), "--width", std::to_string(1 + kEmbedding),
                               "--adagrad", "--layers", fmt::format("{}", fmt::join(kLayers, ","))});
  }
  return flags;
}

std::function<Rate()> MakeLimit(const Settings& settings, const SparseJob& job, const JobResult& first) {
  const Exchanged probe = RunExchange(
      settings, kLimitRows, LimitFlags(settings, job, kFirstHeader, job.steps_per_s * settings.seconds / 4));
  const double more = first.bytes_sent / first.global_step - probe.bytes;
  const int64_t header = kFirstHeader + std::llround(more / 2 / static_cast<double>(job.messages()));
  return [&settings, &job, flags = LimitFlags(settings, job, header, probe.per_s * settings.seconds)] {
    const Exchanged limit = RunExchange(settings, kLimitRows, flags);
    return Rate{limit.per_s * static_cast<double>(job.batch), limit.bytes};
  };
}

std::vector<Row> MeasureSparse(const Settings& settings, const SparseJob& job) {
  Row row = {job.name, job.what(), "rows/s", job.to_reach, false, {}, {}, {}, {}};
  const std::string own = settings.Program("cmd/dtrain");
  const JobResult first = RunSparse(settings, own, job, std::llround(job.steps_per_s * settings.seconds / 4));
  const int64_t steps = std::max<int64_t>(1, std::llround(first.steps_per_s * settings.seconds));
  const auto run = [&](const std::string& program, const SparseJob& one) {
    const JobResult result = RunSparse(settings, program, one, steps);
    return Rate{result.steps_per_s * static_cast<double>(job.batch), result.bytes_sent / result.global_step};
  };
  const auto dtrain = [&](const std::string& program) { return run(program, job); };
  if (job.wire != Wire::kTcpWithKeys) {
    MeasureSides(
        settings, dtrain, [&] { return MakeLimit(settings, job, first); }, &row);
    return {row};
  }
  SparseJob without = job;
  without.wire = Wire::kTcp;
  MeasureSides(
      settings, dtrain, [&] { return [&] { return run(own, without); }; }, &row, "without");
  return {row};
}

const std::vector<SparseJob>& SparseJobs() {
  constexpr Wire kTcp = Wire::kTcp;
  static const std::vector<SparseJob> jobs = {
      {"sparse_128", false, 128, 1, 3000},
      {"sparse_128_in_flight_2", false, 128, 2, 5000},
      {"sparse_4096", false, 4096, 1, 150},
      {"sparse_4096_in_flight_2", false, 4096, 2, 200},
      {"wide_deep", true, 1024, 1, 200},
      {"wide_deep_in_flight_2", true, 1024, 2, 350},
      {"tcp_sparse_128", false, 128, 2, 4000, kTcp, "0.65"},
      {"tcp_sparse_4096", false, 4096, 2, 200, kTcp, "0.7"},
      {"tcp_sparse_4096_keys", false, 4096, 2, 200, Wire::kTcpWithKeys, "0.82"},
      {"tcp_wide_deep", true, 1024, 2, 300, kTcp, ""},
  };
  return jobs;
}

}  // namespace

std::vector<Case> SparseCases(const Settings& settings) {
  std::vector<Case> cases;
  for (const SparseJob& job : SparseJobs()) {
    cases.push_back({{job.name}, [&] { return MeasureSparse(settings, job); }, true});
  }
  return cases;
}

}  // namespace dtrain::bench
