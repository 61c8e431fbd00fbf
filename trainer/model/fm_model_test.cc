// Factorization machines against plain loops in double, and their initial values.
#include "trainer/model/fm_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"
#include "trainer/model/contributions.h"
#include "trainer/model/finite.h"

namespace dtrain {
namespace {

ModelConfig FmConfig(ModelHead head, int64_t factors) {
  ModelConfig config;
  config.kind = ModelKind::kFm;
  config.head = head;
  config.inputs = 10;
  config.outputs = 1;
  config.factors = factors;
  config.init.kind = InitKind::kNormal;
  return config;
}

// Rows of up to 6 of 10 features, some of which stand there twice, and a model with random values.
struct Problem {
  explicit Problem(ModelHead head, int64_t factors = 9, bool with_values = true)
      : config(FmConfig(head, factors)), layout(TableLayoutOf(config, 2)) {
    const CounterRandom random(factors);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = row % 7; i > 0; --i) {
        const auto at = static_cast<uint64_t>(places.size());
        places.push_back(static_cast<uint32_t>(random.Below(3 * at, 10)));
        values.push_back(static_cast<float>(random.Normal(3 * at + 1)));
      }
      offsets.push_back(static_cast<int64_t>(places.size()));
      labels.push_back(row % 3 == 0 ? 1 : 0);
      targets.push_back(static_cast<float>(random.Normal(1000 + row)));
      weights.push_back(static_cast<float>(row % 4) / 2);
    }
    for (int64_t i = 0; i < 11 * (1 + factors); ++i) {
      parameters.push_back(static_cast<float>(0.5 * random.Normal(2000 + i)));
    }
    batch.rows = kRows;
    batch.columns = 11;
    HasClasses(config) ? void(batch.labels = labels.data()) : void(batch.targets = targets.data());
    batch.sparse.offsets = offsets.data();
    batch.sparse.places = places.data();
    batch.sparse.values = with_values ? values.data() : nullptr;
    batch.sparse.bias = 10;
  }

  int64_t width() const { return 1 + config.factors; }
  double ValueAt(int64_t i) const {
    return batch.sparse.values == nullptr ? 1 : static_cast<double>(values[static_cast<size_t>(i)]);
  }
  // The output of a row by its definition: each pair of features for itself.
  double Output(const std::vector<double>& at, int64_t row) const {
    double sum = at[static_cast<size_t>(10 * width())];
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      const double* const one = at.data() + places[i] * width();
      sum += one[0] * ValueAt(i);
      for (int64_t j = offsets[row]; j < i; ++j) {
        const double* const other = at.data() + places[j] * width();
        for (int64_t f = 1; f < width(); ++f) sum += one[f] * other[f] * ValueAt(i) * ValueAt(j);
      }
    }
    return sum;
  }
  double Loss(const std::vector<double>& at) const {
    double sum = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      const double z = Output(at, row), y = labels[row];
      const double own = HasClasses(config) ? std::log1p(std::exp(-std::fabs(z))) + std::max(z, 0.0) - y * z
                                            : (z - static_cast<double>(targets[row])) *
                                                  (z - static_cast<double>(targets[row]));
      sum += own * (batch.weights == nullptr ? 1 : static_cast<double>(weights[row]));
    }
    return sum / kRows;
  }

  static constexpr int64_t kRows = 40;
  ModelConfig config;
  Layout layout;
  std::vector<int64_t> offsets{0};
  std::vector<uint32_t> places;
  std::vector<float> values, targets, weights, parameters;
  std::vector<int32_t> labels;
  Batch batch;
};

std::unique_ptr<FmModel> ModelOf(const Problem& problem) {
  return std::make_unique<FmModel>(problem.config, problem.layout, Problem::kRows, Reduce::kMean);
}

void CheckGradient(const Problem& problem) {
  const auto model = ModelOf(problem);
  std::vector<float> gradient(problem.parameters.size(), NAN);
  model->Begin(problem.parameters.data(), problem.batch, gradient.data(), false);
  std::vector<double> at(problem.parameters.begin(), problem.parameters.end());
  CHECK(static_cast<double>(model->End().loss) == doctest::Approx(problem.Loss(at)).epsilon(1e-6));
  double largest = 0, scale = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    constexpr double kStep = 1e-5;
    const double here = at[i];
    const bool bias_factor = i > static_cast<size_t>(10 * problem.width());
    at[i] = here + kStep;
    const double above = problem.Loss(at);
    at[i] = here - kStep;
    const double slope = bias_factor ? 0 : (above - problem.Loss(at)) / (2 * kStep);
    at[i] = here;
    largest = std::max(largest, std::fabs(slope - static_cast<double>(gradient[i])));
    scale = std::max(scale, std::fabs(slope));
  }
  CHECK(largest <= 1e-6 * std::max(1.0, scale));
}

TEST_CASE("fm: the gradient is that of central differences in double, of each head and number of factors") {
  for (const ModelHead head : {ModelHead::kLogistic, ModelHead::kLinear}) {
    for (const int64_t factors : {1, 3, 4, 8, 9, 15}) {
      CAPTURE(factors);
      CheckGradient(Problem(head, factors));
      CheckGradient(Problem(head, factors, false));
    }
    Problem weighted(head);
    weighted.batch.weights = weighted.weights.data();
    weighted.batch.weight = Problem::kRows;
    CheckGradient(weighted);
  }
}

TEST_CASE("fm: outputs are the sums over all pairs, and a feature that comes twice is a pair with itself") {
  const Problem problem(ModelHead::kLinear);
  const auto model = ModelOf(problem);
  const std::vector<double> at(problem.parameters.begin(), problem.parameters.end());
  const auto outputs = model->Outputs(problem.parameters.data(), problem.batch);
  for (int64_t row = 0; row < Problem::kRows; ++row) {
    CHECK(static_cast<double>(outputs.row(row)[0]) == doctest::Approx(problem.Output(at, row)).epsilon(1e-5));
  }
  Problem twice(ModelHead::kLinear, 2);
  twice.offsets = {0, 2};
  twice.places = {3, 3};
  twice.values = {2, 3};
  twice.batch.rows = 1;
  std::fill(twice.parameters.begin(), twice.parameters.end(), 0.0f);
  float* const row = twice.parameters.data() + 3 * 3;
  row[0] = 1, row[1] = 0.5f, row[2] = -1;
  const auto small = ModelOf(twice);
  twice.batch.sparse.offsets = twice.offsets.data();
  twice.batch.sparse.places = twice.places.data();
  twice.batch.sparse.values = twice.values.data();
  CHECK(small->Outputs(twice.parameters.data(), twice.batch).row(0)[0] == 5 + 6 * (0.25f + 1));
}

TEST_CASE("fm: a batch whose rows have no feature has their bias, and a gradient of it alone") {
  Problem problem(ModelHead::kLinear);
  problem.offsets.assign(problem.offsets.size(), 0);
  problem.batch.sparse.places = nullptr;  // as of an empty list
  CheckGradient(problem);
}

TEST_CASE("fm: a batch without rows has no gradient") {
  Problem problem(ModelHead::kLogistic);
  problem.batch = Batch();
  problem.batch.columns = 2;
  const auto model = ModelOf(problem);
  std::vector<float> gradient(2 * static_cast<size_t>(problem.width()), NAN);
  model->Begin(problem.parameters.data(), problem.batch, gradient.data(), false);
  CHECK(gradient == std::vector<float>(gradient.size(), 0.0f));
}

TEST_CASE("fm: weights and bias begin at 0, factors as functions of seed, feature and factor") {
  ModelConfig config = FmConfig(ModelHead::kLogistic, 4);
  config.inputs = 1000;
  config.init.stddev = 0.01;
  config.init.bias = BiasInit::kSame;
  const TableLayout table = *TableLayoutOf(config, 1).table;
  const RowWeights rows(config, table);
  std::vector<float> all(5000), bias(5, NAN), none(5, NAN);
  for (uint64_t feature = 0; feature < 1000; ++feature) rows.Write(feature, all.data() + 5 * feature);
  double square = 0;
  std::vector<float> factors;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 5 == 0) {
      CHECK(all[i] == 0);
    } else {
      factors.push_back(all[i]);
      square += static_cast<double>(all[i]) * static_cast<double>(all[i]);
    }
  }
  CHECK(std::sqrt(square / 4000) == doctest::Approx(0.01).epsilon(0.05));
  std::sort(factors.begin(), factors.end());
  CHECK(std::adjacent_find(factors.begin(), factors.end()) == factors.end());
  rows.Write(1000, bias.data());
  rows.Write(1001, none.data());
  CHECK(bias == std::vector<float>(5, 0.0f));
  CHECK(none == std::vector<float>(5, 0.0f));
  std::vector<float> again(5);
  RowWeights(config, *TableLayoutOf(config, 3).table).Write(7, again.data());
  CHECK(std::equal(again.begin(), again.end(), all.begin() + 35));
  config.init.seed = 2;
  RowWeights(config, table).Write(7, again.data());
  CHECK(again[1] != all[36]);
}

TEST_CASE("fm: a value that is not finite is named by its variable, feature and factor") {
  const ModelConfig config = FmConfig(ModelHead::kLogistic, 2);
  const TableLayout table = *TableLayoutOf(config, 1).table;
  const uint64_t keys[] = {table.RowOf(7), table.bias_row()};
  const auto named = [&](size_t at) {
    std::vector<float> values(6, 0.0f);
    values[at] = NAN;
    return FirstNonFinite(table, {keys, 2}, reinterpret_cast<const std::byte*>(values.data()), kFactorsName)
        .value_or("");
  };
  CHECK(named(0) == "weights/W1[7] is nan");
  CHECK(named(2) == "factors/V1[7, 1] is nan");
  CHECK(named(3) == "biases/b1[0] is nan");
}

TEST_CASE("fm: a feature's contribution is its weight and half of each of its pairs, and they add up") {
  for (const bool with_values : {true, false}) {
    const Problem problem(ModelHead::kLinear, 9, with_values);
    const std::vector<double> at(problem.parameters.begin(), problem.parameters.end());
    Contributions contributions(problem.config, problem.layout);
    RowShares shares;
    for (int64_t row = 0; row < problem.batch.rows; ++row) {
      contributions.Of(problem.parameters.data(), problem.batch, row, 0, &shares);
      const int64_t begin = problem.offsets[row], end = problem.offsets[row + 1];
      REQUIRE(shares.features.size() == static_cast<size_t>(end - begin));
      double sum = shares.bias;
      for (int64_t i = begin; i < end; ++i) {
        const double* const own = at.data() + problem.places[i] * problem.width();
        double expected = own[0] * problem.ValueAt(i);
        for (int64_t j = begin; j < end; ++j) {
          const double* const other = at.data() + problem.places[j] * problem.width();
          for (int64_t f = 1; f < problem.width() && j != i; ++f) {
            expected += 0.5 * own[f] * other[f] * problem.ValueAt(i) * problem.ValueAt(j);
          }
        }
        CHECK(shares.features[static_cast<size_t>(i - begin)] == doctest::Approx(expected).epsilon(1e-12));
        sum += shares.features[static_cast<size_t>(i - begin)];
      }
      CHECK(sum == doctest::Approx(problem.Output(at, row)).epsilon(1e-12));
    }
  }
}

}  // namespace
}  // namespace dtrain
