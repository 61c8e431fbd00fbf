#include "trainer/table/row_optimizer.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr int64_t kFeatures = 300, kFactors = 3, kWidth = 1 + kFactors;

OptimizerConfig Settings(OptimizerKind kind) {
  OptimizerConfig settings;
  settings.kind = kind;
  settings.learning_rate = 0.1;
  if (kind != OptimizerKind::kAdamw) settings.l2 = 0.01;
  settings.decay_biases = kind != OptimizerKind::kFtrl;
  return settings;
}

Config FmConfig() {
  Config config = LinearCluster(1, 1, 1);
  config.model.kind = ModelKind::kFm;
  config.model.inputs = kFeatures;
  config.model.factors = kFactors;
  config.model.init = InitConfig();
  config.model.init.kind = InitKind::kNormal;
  config.model.init.stddev = 0.3;
  return config;
}

Config WithParts(OptimizerKind linear, OptimizerKind factors) {
  Config config = FmConfig();
  config.train.linear = {Settings(linear), {"kind"}};
  config.train.factors = {Settings(factors), {"kind"}};
  return config;
}

// The rows of all features and the bias, in order.
std::vector<uint64_t> AllRows(const TableLayout& table) {
  std::vector<uint64_t> rows{table.bias_row()};
  for (uint64_t feature = 0; feature < kFeatures; ++feature) rows.push_back(table.RowOf(feature));
  std::sort(rows.begin(), rows.end());
  return rows;
}

// All rows, with their slots, after thirty updates of some of them and of the bias.
template <typename Rows>
std::vector<std::vector<float>> Updated(const Config& config, const TableLayout& table, Rows rows) {
  RowOptimizer optimizer(config, table);
  const CounterRandom random(11);
  uint64_t count = 0;
  for (int64_t update = 1; update <= 30; ++update) {
    std::vector<uint64_t> keys;
    for (const uint64_t row : AllRows(table)) {
      if (random.Below(count++, 3) > 0 || row == table.bias_row()) keys.push_back(row);
    }
    std::vector<std::byte> gradient(keys.size() * kWidth * sizeof(float) + 1);
    for (size_t i = 0; i < keys.size() * kWidth; ++i) {
      const auto value = static_cast<float>(random.Normal(count++));
      std::memcpy(gradient.data() + 1 + i * sizeof(float), &value, sizeof value);  // at an odd address
    }
    UpdateStep step;
    step.number = update;
    optimizer.Apply(step, {keys.data(), static_cast<int64_t>(keys.size())}, gradient.data() + 1, &rows);
  }
  std::vector<std::vector<float>> all;
  for (const uint64_t row : AllRows(table)) {
    const float* const values = rows.Find(row);
    REQUIRE(values != nullptr);
    all.emplace_back(values, values + RowValues(config, kWidth));
  }
  return all;
}

// What a row has of columns [first, first + count): their weights, then each slot.
std::vector<float> Columns(const Config& config, const std::vector<float>& row, int64_t first,
                           int64_t count) {
  std::vector<float> found(row.begin() + first, row.begin() + first + count);
  for (const RowSlot& slot : SlotsOf(config).OfRow(kWidth)) {
    const int64_t skip = first - slot.first;
    if (skip < 0 || skip >= slot.count) continue;
    const auto begin = row.begin() + slot.begin + skip;
    found.insert(found.end(), begin, begin + count);
  }
  return found;
}

void CheckParts(OptimizerKind linear, OptimizerKind factors, bool hashed) {
  const TableLayout table(hashed ? TableLayout::kHashed : kFeatures, kWidth, 1, kFactors);
  const auto rows_of = [&](const Config& config) {
    const RowRange all{0, table.rows()};
    return hashed ? Updated(config, table, EmptyHashRows(config, table, all))
                  : Updated(config, table, EmptyRows(config, table, all));
  };
  Config only_linear = FmConfig(), only_factors = FmConfig();
  only_linear.train.optimizer = Settings(linear);
  only_factors.train.optimizer = Settings(factors);
  const Config both = WithParts(linear, factors);
  const auto two = rows_of(both), first = rows_of(only_linear), second = rows_of(only_factors);
  REQUIRE(two.size() == kFeatures + 1);
  for (size_t row = 0; row < two.size(); ++row) {
    CAPTURE(row);
    CHECK(Columns(both, two[row], 0, 1) == Columns(only_linear, first[row], 0, 1));
    CHECK(Columns(both, two[row], 1, kFactors) == Columns(only_factors, second[row], 1, kFactors));
  }
}

TEST_CASE("row optimizer: each part has the weights and slots of a model with its optimizer alone") {
  using Kind = OptimizerKind;
  for (const bool hashed : {false, true}) {
    CAPTURE(hashed);
    CheckParts(Kind::kFtrl, Kind::kAdagrad, hashed);
    CheckParts(Kind::kAdam, Kind::kSgd, hashed);
    CheckParts(Kind::kSgd, Kind::kFtrl, hashed);
    CheckParts(Kind::kAdamw, Kind::kAdam, hashed);  // slots of the same names
  }
}

TEST_CASE("row optimizer: a part without keys of its own has train.optimizer") {
  Config config = FmConfig();
  config.train.optimizer = Settings(OptimizerKind::kAdagrad);
  config.train.linear = {Settings(OptimizerKind::kFtrl), {"kind"}};
  const TableLayout table(kFeatures, kWidth, 1, kFactors);
  const RowRange all{0, table.rows()};
  const Config both = WithParts(OptimizerKind::kFtrl, OptimizerKind::kAdagrad);
  CHECK(Updated(config, table, EmptyRows(config, table, all)) ==
        Updated(both, table, EmptyRows(both, table, all)));
}

TEST_CASE("model slots: a row has them in turn, and the linear part has its own") {
  const ModelSlots one(std::vector<std::string>{"m", "v"});
  CHECK(one.counts().RowValues(4) == 12);
  REQUIRE(one.OfRow(4).size() == 2);
  CHECK(one.OfRow(4)[1].begin == 8);
  CHECK(one.OfRow(4)[1].count == 4);
  CHECK(one.Text() == "m, v");
  const ModelSlots two({"accumulator"}, {"z", "n"});
  CHECK(two.counts().RowValues(4) == 4 + 2 + 3);
  std::string text;
  for (const RowSlot& slot : two.OfRow(4)) {
    text += fmt::format("{} {} {} {}; ", slot.name, slot.begin, slot.first, slot.count);
  }
  CHECK(text == "z 4 0 1; accumulator 5 1 3; n 8 0 1; ");
  CHECK(two.Text() == "z, n for the linear part, and accumulator");
  CHECK(ModelSlots().Text() == "no slots");
}

}  // namespace
}  // namespace dtrain
