// Runs whose rows have offsets (data.offset): what is added to the output of a row.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/files.h"
#include "trainer/config/load.h"
#include "trainer/config/model_config.h"
#include "trainer/sets/load_data.h"
#include "trainer/survey/data_shape.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

std::string File(const std::string& name, const std::string& text) {
  const std::string path = testing::NewDirectory() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

// A job in sync that reads all rows of a file in each step.
Config Job(DataFormat format, const std::string& path, int ps = 1, int workers = 1) {
  Config config = LinearCluster(ps, workers, 0);
  config.data.train.format = format;
  config.data.train.path = {path};
  config.data.train.label = "y";
  config.data.cache_dir = testing::NewDirectory();
  config.data.shuffle = false;
  config.model.inputs.reset();
  config.train.mode = TrainMode::kSync;
  config.train.batch_size = 60;
  return config;
}

constexpr int kRows = 60;
double A(int row) { return std::sin(row * 1.7); }
double OffsetOf(int row) { return 0.25 * (row % 9) - 1; }
int Target(int row) { return row * 7 % 5 < 2 ? 1 : 0; }

// Rows with a text, which may be hashed, and with offsets.
std::string Table(bool of_classes, double offset) {
  std::string text = "a,city,o,y\n";
  for (int i = 0; i < kRows; ++i) {
    const double own = std::isnan(offset) ? OffsetOf(i) : offset;
    const double y = of_classes ? Target(i) : 0.5 + i % 4;
    text += fmt::format("{:.6g},c{},{},{}\n", A(i), i % 6, own, y);
  }
  return text;
}
std::string VwRows() {
  std::string text;
  for (int i = 0; i < kRows; ++i)
    text += fmt::format("{} {} {} |a x:{:.6g} c{}\n", Target(i), 1 + i % 2, OffsetOf(i), A(i), i % 6);
  return text;
}

TEST_CASE("offset: the same one for all rows moves the bias by so much, whatever the loss") {
  constexpr double kOffset = 0.375;
  std::vector<std::pair<ModelKind, std::optional<gpu::LossKind>>> models = {{ModelKind::kLinear, {}},
                                                                            {ModelKind::kLogistic, {}}};
  for (const gpu::LossRow& row : gpu::LossTable())
    models.emplace_back(row.of_classes ? ModelKind::kLogistic : ModelKind::kLinear, row.kind);
  for (const auto& [kind, loss] : models) {
    CAPTURE(loss ? gpu::LossRowOf(*loss).name : "none");
    std::vector<RunSummary> runs;
    for (const bool has_offset : {true, false}) {
      const std::string path = File("rows.csv", Table(kind == ModelKind::kLogistic, kOffset));
      Config config = Job(DataFormat::kCsv, path);
      config.model.kind = kind;
      config.model.loss = loss;
      config.data.ignore = {"city"};
      config.data.test = config.data.train;
      has_offset ? void(config.data.offset = "o") : config.data.ignore.push_back("o");
      config.model.init.output_bias = has_offset ? 0.5 : 0.5 + kOffset;
      config.train.optimizer.learning_rate = 0.01;
      config.train.steps = 30;
      runs.push_back(Run(config));
      CHECK(runs.back().status == "done");
    }
    const auto value = [&](int run, const char* name) { return runs[run].weights.at(name).at(0); };
    CHECK(value(0, "weights/W1") == doctest::Approx(value(1, "weights/W1")).epsilon(1e-4));
    CHECK(value(0, "biases/b1") + kOffset == doctest::Approx(value(1, "biases/b1")).epsilon(1e-5));
    CHECK(*runs[0].test.loss == doctest::Approx(*runs[1].test.loss).epsilon(1e-5));
  }
}

TEST_CASE(
    "offset: poisson with the logarithm of the exposure gives the rates, which are known in closed form") {
  // Of rows of one feature, 0 or 1, the rate of each is the events over the exposure.
  std::string text = "a,log_exposure,y\n";
  double events[2] = {}, exposures[2] = {};
  for (int i = 0; i < kRows; ++i) {
    const double exposure = 0.25 + i % 7;
    const int y = i * 5 % 4 + i % 2;
    events[i % 2] += y;
    exposures[i % 2] += exposure;
    text += fmt::format("{},{:.9g},{}\n", i % 2, std::log(exposure), y);
  }
  const double rates[] = {std::log(events[0] / exposures[0]), std::log(events[1] / exposures[1])};
  for (const int workers : {1, 3}) {
    Config config = Job(DataFormat::kCsv, File("rows.csv", text), 2, workers);
    config.model.loss = gpu::LossKind::kPoisson;
    config.data.offset = "log_exposure";
    config.train.optimizer.learning_rate = 0.2;
    config.train.steps = 3000;
    config.train.batch_size = kRows / workers;
    const RunSummary summary = Run(config);
    CHECK(summary.weights.at("biases/b1").at(0) == doctest::Approx(rates[0]).epsilon(1e-4));
    CHECK(summary.weights.at("weights/W1").at(0) == doctest::Approx(rates[1] - rates[0]).epsilon(1e-4));
  }
}

// The run's model, and what it has measured.
std::string FiguresOf(const Config& config) {
  const RunSummary summary = Run(config);
  CHECK(summary.status == "done");
  return fmt::format("{} {}", *summary.model_crc, *summary.final_loss);
}

// Jobs of all kinds of models and rows.
std::vector<Config> Jobs(int ps, int workers) {
  const std::string csv = File("rows.csv", Table(true, NAN)), vw = File("rows.vw", VwRows());
  const std::string table = fmt::format("train: {{format: csv, path: {}, label: y}}, offset: o", csv);
  const std::string text = fmt::format("train: {{format: vw, path: {}}}, offset: initial, hash_bits: 10", vw);
  std::vector<std::string> tasks[2];
  for (int i = 0; i < ps; ++i) tasks[0].push_back(fmt::format("\"127.0.0.1:{}\"", 10001 + i));
  for (int i = 0; i < workers; ++i) tasks[1].push_back(fmt::format("\"127.0.0.1:{}\"", 11001 + i));
  const std::pair<std::string, std::string> jobs[] = {
      {"kind: logistic", table + ", categories: [city]"},
      {"kind: mlp, hidden: [4], head: logistic", table + ", ignore: [city], validation: 9"},
      {"kind: logistic", table + ", hash: [city], hash_bits: 10"},
      {"kind: logistic, table: hash", table + ", hash: [city]"},
      {"kind: wide_deep, hidden: [4], embedding: 2", table + ", hash: [city], hash_bits: 10"},
      {"kind: fm, factors: 3", text},
      {"kind: logistic, loss: hinge", text},
  };
  std::vector<Config> configs;
  for (const auto& [model, data] : jobs) {
    const std::string path = File(
        "job.yaml", fmt::format("cluster: {{ps: [{}], worker: [{}]}}\nmodel: {{{}}}\ndata: {{{}, shuffle: "
                                "false}}\ntrain: {{mode: sync, epochs: 3, batch_size: 7, optimizer: {{kind: "
                                "adagrad, learning_rate: 0.1}}}}\nfailure: {{detect_s: 20}}\n",
                                fmt::join(tasks[0], ", "), fmt::join(tasks[1], ", "), model, data));
    configs.push_back(LoadConfig(path, {}, {}));
    configs.back().data.cache_dir = testing::NewDirectory();
  }
  return configs;
}

TEST_CASE("offset: every cache, a pipe and feed give the bits of rows in memory") {
  for (Config& config : Jobs(2, 1)) {
    CAPTURE(static_cast<int>(config.model.kind));
    const std::string memory = FiguresOf(config);
    Config without = config;
    without.data.offset.clear();
    without.data.ignore.push_back("o");
    if (config.data.train.format != DataFormat::kVw) CHECK(FiguresOf(without) != memory);
    for (const DataCache cache : {DataCache::kNone, DataCache::kFile, DataCache::kFile}) {
      config.data.cache = cache;
      CHECK(FiguresOf(config) == memory);
    }
    config.data.cache = DataCache::kMemory;
    config.data.split = Split::kFeed;
    CHECK(FiguresOf(config) == memory);
    config.data.split = Split::kShard;
    config.train.epochs = 1;
    const std::string once = FiguresOf(config);
    ResolveShape(&config, Scan::kAny);  // a pipe is read once
    config.data.cache = DataCache::kNone;
    config.data.train.path = {"exec:cat " + config.data.train.path[0]};
    CHECK(FiguresOf(config) == once);
  }
}

TEST_CASE("offset: one and three workers in sync give the same bits on any number of ps") {
  for (const int workers : {1, 3}) {
    std::vector<std::string> first;
    for (const int ps : {1, 3}) {
      std::vector<Config> jobs = Jobs(ps, workers);
      for (size_t i = 0; i < jobs.size(); ++i) {
        CAPTURE(i);
        const std::string figures = FiguresOf(jobs[i]);
        if (ps == 1) first.push_back(figures);
        CHECK(figures == first[i]);
        jobs[i].train.mode = TrainMode::kAsync;
        CHECK(Run(jobs[i]).status == "done");
      }
    }
  }
}

TEST_CASE("offset: rows with others are other rows to a checkpoint") {
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    std::vector<DataFingerprint> found;
    for (const double offset : {0.5, 1.5}) {
      Config config = Job(DataFormat::kCsv, File("rows.csv", Table(false, offset)));
      config.data.ignore = {"city"};
      config.data.offset = "o";
      config.data.cache = cache;
      found.push_back(FingerprintOf(*LoadData(config).train));
    }
    CHECK(found[0].labels == found[1].labels);
    CHECK(found[0].features != found[1].features);
  }
}

}  // namespace
}  // namespace dtrain
