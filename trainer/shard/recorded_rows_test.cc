// Tables against what PyTorch and TensorFlow made of the same gradients of rows: from the keys of the config
// file to the weights, over one ps and over three. trainer/optim/testdata/README.md says how the numbers were
// recorded.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/load_test_util.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/shard/table_part.h"

namespace dtrain {
namespace {

constexpr uint64_t kRows = 6;  // five features and the bias
constexpr size_t kWidth = 2;
constexpr size_t kUpdates = 12;

// One row of an update's gradient. A row may come several times.
struct RowGradient {
  uint64_t row = 0;
  float values[kWidth] = {};
};

struct Case {
  std::string settings;                      // of train.optimizer, as YAML
  std::vector<std::vector<double>> weights;  // of all rows, after each update
};

struct Recording {
  std::vector<std::vector<RowGradient>> gradients;  // of each update, the same for all cases
  std::vector<Case> cases;
};

Recording ReadRecording(const std::string& path) {
  const std::string kGradient = "gradient";
  std::ifstream file(path);
  Recording recording;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '{') {
      recording.cases.push_back({line, {}});
      continue;
    }
    const bool is_gradient = line.compare(0, kGradient.size(), kGradient) == 0;
    std::istringstream numbers(is_gradient ? line.substr(kGradient.size()) : line);
    if (is_gradient) {
      std::vector<RowGradient>& rows = recording.gradients.emplace_back();
      for (RowGradient row; numbers >> row.row >> row.values[0] >> row.values[1];) rows.push_back(row);
    } else {
      std::vector<double>& weights = recording.cases.back().weights.emplace_back();
      for (double weight; numbers >> weight;) weights.push_back(weight);
    }
  }
  return recording;
}

Config LoadSettings(const std::string& settings, int ps) {
  std::string addresses;
  for (int i = 0; i < ps; ++i) addresses += (i == 0 ? "\"p:" : ", \"p:") + std::to_string(i + 1) + "\"";
  return LoadConfig(WriteTestFile("rows.yaml", "cluster: {ps: [" + addresses +
                                                   "], worker: [\"w:1\", \"w:2\", \"w:3\"]}\n"
                                                   "model: {kind: softmax, inputs: 5, outputs: 2}\n"
                                                   "data: {train: {format: libsvm, path: rows}}\n"
                                                   "train: {mode: sync, reduce: sum, steps: 12, optimizer: " +
                                                   settings + "}\n"),
                    {}, {});
}

// Table: a table on one or more ps, whose rounds have gradients of up to three workers.
class Table {
 public:
  explicit Table(const Config& config)
      : config_(config),
        layout_(TableLayoutOf(config.model, static_cast<int>(config.cluster.ps.size()))),
        workers_(config.cluster.worker.size()) {
    for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
      shards_.push_back(std::make_unique<TablePart>(config_, layout_, static_cast<int>(ps)));
      shards_.back()->Initialise();
    }
  }

  // The first worker has the first gradient of each row, the second the second, and so on. A worker without
  // one takes no part in the round.
  void Apply(const std::vector<RowGradient>& gradients) {
    std::vector<std::map<uint64_t, const float*>> of_workers(workers_);
    std::map<uint64_t, size_t> times;
    for (const RowGradient& gradient : gradients) {
      const uint64_t row = layout_.table->RowOf(gradient.row);
      of_workers.at(times[row]++)[row] = gradient.values;
    }
    for (const auto& shard : shards_) {
      for (int64_t block = 0; block < shard->block_count(); ++block) {
        ApplyTo(shard.get(), block, of_workers);
      }
    }
  }

  std::vector<float> Weights() {
    std::vector<float> weights;
    for (uint64_t row = 0; row < kRows; ++row) {
      const KeyList key = {layout_.table->RowOf(row)};
      for (const auto& shard : shards_) {
        for (int64_t block = 0; block < shard->block_count(); ++block) {
          const RowRange rows = shard->BlockRows(block);
          if (key[0] < rows.begin || key[0] >= rows.end) continue;
          const net::LentBytes lent = shard->Lend(block, key);
          const auto* const values = static_cast<const float*>(lent.data);
          weights.insert(weights.end(), values, values + kWidth);
          lent.release(const_cast<void*>(lent.data), lent.context);
        }
      }
    }
    return weights;
  }

 private:
  static void ApplyTo(TablePart* shard, int64_t block,
                      const std::vector<std::map<uint64_t, const float*>>& of_workers) {
    const RowRange rows = shard->BlockRows(block);
    std::vector<KeyList> keys(of_workers.size());
    std::vector<std::vector<float>> values(of_workers.size());
    RoundGradients round;
    for (size_t worker = 0; worker < of_workers.size(); ++worker) {
      for (const auto& [row, gradient] : of_workers[worker]) {
        if (row < rows.begin || row >= rows.end) continue;
        keys[worker].push_back(row);
        values[worker].insert(values[worker].end(), gradient, gradient + kWidth);
      }
      const auto* const bytes = reinterpret_cast<const std::byte*>(values[worker].data());
      const net::TensorView view = {bytes, values[worker].size() * sizeof(float)};
      round.Add({view, keys[worker]}, of_workers[worker].empty() ? 0 : 1);
    }
    shard->ApplyMean(block, round);
  }

  const Config config_;
  const Layout layout_;
  const size_t workers_;
  std::vector<std::unique_ptr<TablePart>> shards_;
};

void CheckCase(const Recording& recording, const Case& recorded, int ps) {
  CAPTURE(recorded.settings);
  CAPTURE(ps);
  REQUIRE(recorded.weights.size() == kUpdates);
  Table table(LoadSettings(recorded.settings, ps));
  std::vector<double> sizes(kRows * kWidth);  // the largest that each weight has been
  for (size_t update = 0; update < kUpdates; ++update) {
    CAPTURE(update);
    table.Apply(recording.gradients[update]);
    const std::vector<float> weights = table.Weights();
    REQUIRE(weights.size() == sizes.size());
    REQUIRE(recorded.weights[update].size() == sizes.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      CAPTURE(i);
      const double expected = recorded.weights[update][i];
      sizes[i] = std::max(sizes[i], std::abs(expected));
      // Twelve updates round a weight by up to 2^-24 of its size each, and its slots besides: 3e-7 was seen.
      // A row without a gradient stays 0.
      CHECK(std::abs(static_cast<double>(weights[i]) - expected) <= 1e-6 * sizes[i]);
    }
  }
}

void CheckCases(const std::string& file, size_t cases) {
  const Recording recording = ReadRecording("trainer/optim/testdata/" + file);
  REQUIRE(recording.gradients.size() == kUpdates);
  CHECK(recording.cases.size() == cases);
  for (const Case& recorded : recording.cases) {
    for (const int ps : {1, 3}) CheckCase(recording, recorded, ps);
  }
}

TEST_CASE(
    "recorded rows: tables follow PyTorch's optimizers of sparse gradients, and its dense ones by row") {
  CheckCases("rows_torch.txt", 11);
}

TEST_CASE("recorded rows: tables follow TensorFlow's optimizers of sparse gradients") {
  CheckCases("rows_tensorflow.txt", 13);
}

TEST_CASE("rows: one that is named with a gradient of 0 moves by its velocity, and one that is not stays") {
  Table table(LoadSettings("{kind: momentum, learning_rate: 1, momentum: 0.5}", 1));
  table.Apply({{0, {1, 1}}, {1, {1, 1}}});
  table.Apply({{0, {0, 0}}});
  const std::vector<float> weights = table.Weights();
  CHECK(weights[0] == -1.5f);
  CHECK(weights[kWidth] == -1);
}

}  // namespace
}  // namespace dtrain
