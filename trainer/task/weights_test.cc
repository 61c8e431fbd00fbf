// Rows that count as often as their weights say (data.weight): they train, and are evaluated, as rows that
// are repeated so many times, in every format, way of the rows and mode.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/testing/files.h"
#include "base/tfrecord.h"
#include "trainer/config/load.h"
#include "trainer/task/quiet_run_test_util.h"

namespace dtrain {
namespace {

// 32 rows in a file of each format: with weights 0 to 3, or repeated as often.
struct Files {
  std::string weighted, repeated;  // directories
};

// A message of tf.train.Example with a tag, of less than 128 bytes; and a column of one value: the list's tag
// is that of bytes, floats or whole numbers.
std::string Part(char tag, const std::string& text) {
  return std::string({tag, static_cast<char>(text.size())}) + text;
}
std::string Column(const std::string& name, char list, const std::string& value) {
  return Part('\x0a', Part('\x0a', name) + Part('\x12', Part(list, Part('\x0a', value))));
}

void WriteRow(uint64_t row, int weight, const std::function<void(const std::string&, std::string)>& add,
              const std::string& criteo_weight) {
  const CounterRandom random(7);
  const auto draw = [&](uint64_t what, uint64_t below) { return random.Below(row * 64 + what, below); };
  const uint64_t x = draw(0, 100), city = draw(1, 5), label = draw(2, 100) < x ? 1 : 0;
  add("rows.csv", fmt::format("{},c{},{},{},{}\n", x / 100.0, city, weight, label, 0.5 + x / 50.0));
  add("rows.svm", fmt::format("{}:{} 1:{} {}:1\n", label, weight, x / 100.0, 2 + city));
  add("rows.vw", fmt::format("{} {} |n x:{} |c c{}\n", label, weight, x / 100.0, city));
  std::string criteo = std::to_string(label) + "\t" + criteo_weight;
  for (uint64_t i = 1; i < 13; ++i) criteo += fmt::format("\t{}", draw(5 + i, 4));
  for (uint64_t i = 0; i < 26; ++i) criteo += fmt::format("\tv{}", draw(20 + i, 3));
  add("rows.criteo", criteo + "\n");
  const auto floats = static_cast<float>(x) / 100;
  std::string bytes(sizeof floats, '\0');
  std::memcpy(bytes.data(), &floats, sizeof floats);
  const std::string columns = Column("x", '\x12', bytes) + Column("city", '\x0a', fmt::format("c{}", city)) +
                              Column("w", '\x1a', std::string(1, static_cast<char>(weight))) +
                              Column("y", '\x1a', std::string(1, static_cast<char>(label)));
  std::string record;
  AppendTfrecord(Part('\x0a', columns), &record);
  add("rows.tfrecord", record);
}

const Files& Rows() {
  static const Files files = [] {
    Files made{testing::NewDirectory(), testing::NewDirectory()};
    const auto append = [](const std::string& directory) {
      return [directory](const std::string& file, const std::string& text) {
        std::ofstream(directory + "/" + file, std::ios::app) << text;
      };
    };
    for (const std::string& directory : {made.weighted, made.repeated}) {
      append(directory)("rows.csv", "x,city,w,y,target\n");
    }
    for (uint64_t row = 0; row < 32; ++row) {
      const int weight = static_cast<int>(row % 4);
      WriteRow(row, weight, append(made.weighted), std::to_string(weight));
      for (int i = 0; i < weight; ++i) WriteRow(row, 1, append(made.repeated), "1");
    }
    return made;
  }();
  return files;
}

struct Way {
  std::string format, file, label, data, model;
};

struct Mode {
  std::string mode;
  int workers;
  std::string data, train;
};

// Each worker has one batch, and a round all rows.
Config Job(const Way& way, const Mode& mode, bool weighted) {
  const std::string& directory = weighted ? Rows().weighted : Rows().repeated;
  const int batch = (weighted ? 32 : 48) / mode.workers + (weighted ? 1 : 0);
  const std::string path = testing::NewDirectory() + "/job.yaml";
  std::string workers;
  for (int i = 0; i < mode.workers; ++i) workers += fmt::format("\"127.0.0.1:{}\", ", 11001 + i);
  const std::string source = fmt::format("format: {}, path: {{}}{}", way.format, way.label);
  const std::string test = fmt::format(source, directory + "/" + way.file);
  const bool pipe = mode.data.find("PIPE") != std::string::npos;
  const std::string train =
      pipe ? fmt::format(source, fmt::format("\"exec:cat {}/{}\"", directory, way.file)) : test;
  const std::string cache =
      mode.data.find("cache:") == std::string::npos ? "" : ", cache_dir: " + path + ".cache";
  std::ofstream(path) << fmt::format(
      "cluster: {{ps: [\"127.0.0.1:10001\", \"127.0.0.1:10002\"], worker: [{}]}}\n"
      "model: {{{}}}\ndata: {{train: {{{}}}, test: {{{}}}, shuffle: false{}{}{}}}\n"
      "train: {{mode: {}, epochs: {}, batch_size: {}, {}}}\nhooks: {{progressive: true}}\nfailure: "
      "{{detect_s: 20}}\n",
      workers, way.model, train, test, way.data, pipe ? "" : mode.data, cache, mode.mode, pipe ? 1 : 8, batch,
      mode.train);
  return LoadConfig(path, {}, {});
}

std::vector<std::pair<std::string, double>> FiguresOf(const EvaluationFigures& figures) {
  return {{"loss", figures.loss.value_or(-1)},
          {"accuracy", figures.accuracy.value_or(-1)},
          {"base_accuracy", figures.base_accuracy.value_or(-1)},
          {"log_loss", figures.log_loss.value_or(-1)},
          {"base_log_loss", figures.base_log_loss.value_or(-1)},
          {"auc", figures.auc.value_or(-1)},
          {"average_precision", figures.average_precision.value_or(-1)},
          {"calibration", figures.calibration.value_or(-1)},
          {"positive_share", figures.positive_share.value_or(-1)},
          {"rmse", figures.rmse.value_or(-1)},
          {"base_rmse", figures.base_rmse.value_or(-1)},
          {"mae", figures.mae.value_or(-1)},
          {"base_mae", figures.base_mae.value_or(-1)},
          {"r2", figures.r2.value_or(-1)},
          {"deviance", figures.deviance.value_or(-1)},
          {"base_deviance", figures.base_deviance.value_or(-1)},
          {"d2", figures.d2.value_or(-1)},
          {"share_below", figures.share_below.value_or(-1)}};
}

// Runs both, and compares their losses and all figures of the evaluation at the end.
void CheckEqual(const Way& way, const Mode& mode) {
  CAPTURE(way.file);
  CAPTURE(way.model);
  CAPTURE(way.data);
  CAPTURE(mode.mode);
  CAPTURE(mode.workers);
  CAPTURE(mode.data);
  CAPTURE(mode.train);
  const RunSummary weighted = Run(Job(way, mode, true));
  const RunSummary repeated = Run(Job(way, mode, false));
  REQUIRE(weighted.status == "done");
  REQUIRE(repeated.status == "done");
  REQUIRE(*weighted.test.rows == 32);
  REQUIRE(*repeated.test.rows == 48);
  const auto found = FiguresOf(weighted.test), expected = FiguresOf(repeated.test);
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(found[i].first);
    CHECK(found[i].second == doctest::Approx(expected[i].second).epsilon(1e-6));
  }
  REQUIRE(weighted.weights.size() == repeated.weights.size());
  for (const auto& [name, values] : weighted.weights) {
    const std::vector<float>& others = repeated.weights.at(name);
    REQUIRE(values.size() == others.size());
    for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(others[i]).epsilon(1e-6));
  }
  REQUIRE(weighted.progressive_loss.has_value());
  CHECK(*weighted.progressive_loss == doctest::Approx(*repeated.progressive_loss).epsilon(1e-6));
}

const std::string kTable = ", label: y";
const Way kWays[] = {
    {"csv", "rows.csv", kTable, ", weight: w, categories: [city], ignore: [target]", "kind: logistic"},
    {"csv", "rows.csv", kTable,
     ", weight: w, categories: [city], ignore: [target], class_weights: [balanced]",
     "kind: softmax, outputs: 2"},
    {"csv", "rows.csv", ", label: target", ", weight: w, hash: [city], ignore: [y]",
     "kind: linear, loss: gamma"},
    {"csv", "rows.csv", ", label: target", ", weight: w, ignore: [y, city]",
     "kind: linear, loss: quantile, inputs: 1"},
    {"csv", "rows.csv", kTable, ", weight: w, hash: [city], ignore: [target], hash_bits: 8",
     "kind: logistic"},
    {"tfrecord", "rows.tfrecord", kTable, ", weight: w, categories: [city]", "kind: logistic"},
    {"tfrecord", "rows.tfrecord", kTable, ", weight: w, hash: [city]", "kind: logistic, table: hash"},
    {"libsvm", "rows.svm", "", ", weight: label", "kind: logistic, inputs: 8"},
    {"libsvm", "rows.svm", "", ", weight: label", "kind: mlp, hidden: [3], head: logistic"},
    {"vw", "rows.vw", "", ", hash_bits: 8", "kind: logistic"},
    {"criteo", "rows.criteo", "", ", weight: I1, hash_bits: 8", "kind: logistic"},
    {"criteo", "rows.criteo", "", ", weight: 1, hash_bits: 8", "kind: fm, factors: 2"},
    {"criteo", "rows.criteo", "", ", weight: I1, hash_bits: 8", "kind: wide_deep, hidden: [3], embedding: 2"},
};

const std::string kSgd = "optimizer: {kind: sgd, learning_rate: 0.1}",
                  kSum = "reduce: sum, optimizer: {kind: sgd, learning_rate: 0.002}";

TEST_CASE("weights: rows of any format train and are evaluated as repeated ones") {
  for (const Way& way : kWays) {
    CheckEqual(way, {"async", 1, "", kSgd});
    CheckEqual(way, {"sync", 3, "", kSgd});
  }
}

TEST_CASE(
    "weights: the mean and the sum of a round count rows by weight, in any mode and with a clipped norm") {
  for (const Way& way : {kWays[0], kWays[4], kWays[9]}) {
    for (const std::string& train : {kSgd, kSum, "clip: " + kSgd}) {
      const bool clips = train.front() == 'c';
      const std::string of_train =
          clips ? "optimizer: {kind: sgd, learning_rate: 0.1, clip_norm: 0.1}" : train;
      CheckEqual(way, {"async", 1, "", of_train});
      CheckEqual(way, {"ssp", 1, "", of_train});
      CheckEqual(way, {"sync", 1, "", of_train});
      CheckEqual(way, {"sync", 3, "", of_train});
    }
  }
}

TEST_CASE("weights: rows read from files, a cache, a pipe or by worker 0 count by weight") {
  for (const Way& way : kWays) {
    for (const char* const data : {", cache: none", ", cache: file", ", split: feed"}) {
      CheckEqual(way, {"sync", 3, data, kSgd});
    }
    // Of a pipe the number of features must be known.
    const bool is_known = (way.model + way.data).find("inputs") != std::string::npos ||
                          way.data.find("hash_bits") != std::string::npos;
    if (is_known) CheckEqual(way, {"sync", 1, "PIPE", kSgd});
  }
}

TEST_CASE("weights: a gradient whose rows weigh nothing moves no weight") {
  Config none = Job(kWays[0], {"sync", 1, "", kSgd}, true);
  none.data.train.path = {testing::NewDirectory() + "/rows.csv"};
  std::ofstream(none.data.train.path[0]) << "x,city,w,y,target\n1,c1,0,1,1\n2,c2,0,0,1\n";
  const RunSummary summary = Run(none);
  for (const auto& [name, values] : summary.weights) {
    CHECK(std::all_of(values.begin(), values.end(), [](float value) { return value == 0; }));
  }
}

}  // namespace
}  // namespace dtrain
