// wide_deep against plain loops in double, its variables and its initial values.
#include "trainer/model/wide_deep_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"
#include "trainer/model/contributions.h"

namespace dtrain {
namespace {

constexpr int64_t kColumns = 4, kNumbers = 3, kFeatures = 16;

ModelConfig ConfigOf(ModelHead head, Combine combine, Activation activation) {
  ModelConfig config;
  config.kind = ModelKind::kWideDeep;
  config.head = head;
  config.combine = combine;
  config.activation = activation;
  config.hidden = {7, 5};
  config.embedding = 3;
  config.columns = kColumns;
  config.column_bits = 2;
  config.inputs = kFeatures + kNumbers;
  config.outputs = 1;
  return config;
}

Layout LayoutOf(const ModelConfig& config) {
  return JointLayout(PlaceVariables(ModelVariables(config), 2, PlacementConfig()), TableLayoutOf(config, 2),
                     config);
}

// Rows of up to 6 of 10 features of 4 columns, some of which stand there twice, and a model with random
// values.
struct Problem {
  explicit Problem(const ModelConfig& model, bool with_values = true)
      : config(model), layout(LayoutOf(config)) {
    const CounterRandom random(7);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = row % 7; i > 0; --i) {
        const auto at = static_cast<uint64_t>(places.size());
        places.push_back(static_cast<uint32_t>(random.Below(3 * at, 10)));
        columns.push_back(places.back() % static_cast<uint32_t>(kColumns));
        values.push_back(static_cast<float>(random.Normal(3 * at + 1)));
      }
      offsets.push_back(static_cast<int64_t>(places.size()));
      labels.push_back(row % 3 == 0 ? 1 : 0);
      targets.push_back(static_cast<float>(random.Normal(1000 + row)));
      weights.push_back(static_cast<float>(row % 4) / 2);
      for (int64_t i = 0; i < kNumbers; ++i) {
        numbers.push_back(static_cast<float>(random.Normal(3000 + kNumbers * row + i)));
      }
    }
    for (int64_t i = 0; i < layout.size + 11 * width(); ++i) {
      parameters.push_back(static_cast<float>(0.5 * random.Normal(5000 + i)));
    }
    batch.rows = kRows;
    batch.columns = 11;
    HasClasses(config) ? void(batch.labels = labels.data()) : void(batch.targets = targets.data());
    batch.numbers = numbers.data();
    batch.sparse.offsets = offsets.data();
    batch.sparse.places = places.data();
    batch.sparse.values = with_values ? values.data() : nullptr;
    batch.sparse.bias = 10;
    if (config.combine == Combine::kJoin) batch.sparse.columns = columns.data();
  }

  int64_t width() const { return 1 + config.embedding; }
  double ValueAt(int64_t i) const {
    return batch.sparse.values == nullptr ? 1 : static_cast<double>(values[static_cast<size_t>(i)]);
  }
  double Activated(double sum) const {
    return config.activation == Activation::kTanh ? std::tanh(sum) : 1 / (1 + std::exp(-sum));
  }
  // The output of a row by its definition.
  double Output(const std::vector<double>& at, int64_t row) const {
    const double* const rows = at.data() + layout.size;
    double wide = rows[10 * width()];
    std::vector<double> inputs(static_cast<size_t>(LayerInputs(config)));
    for (int64_t i = offsets[row]; i < offsets[row + 1]; ++i) {
      const double* const own = rows + places[i] * width();
      wide += own[0] * ValueAt(i);
      const int64_t first = batch.sparse.columns == nullptr ? 0 : columns[i] * config.embedding;
      for (int64_t f = 0; f < config.embedding; ++f) {
        inputs[static_cast<size_t>(first + f)] += own[1 + f] * ValueAt(i);
      }
    }
    for (int64_t i = 0; i < kNumbers; ++i) {
      inputs[inputs.size() - kNumbers + static_cast<size_t>(i)] =
          static_cast<double>(numbers[static_cast<size_t>(kNumbers * row + i)]);
    }
    for (size_t layer = 1; layer <= config.hidden.size() + 1; ++layer) {
      const LayerNames names = LayerNamesOf(config, layer);
      const Variable &w = layout.Find(names.weights), &b = layout.Find(names.biases);
      std::vector<double> outputs;
      for (int64_t unit = 0; unit < w.cols; ++unit) {
        double sum = at[static_cast<size_t>(b.offset + unit)];
        for (int64_t i = 0; i < w.rows; ++i) {
          sum += inputs[static_cast<size_t>(i)] * at[static_cast<size_t>(w.offset + i * w.cols + unit)];
        }
        outputs.push_back(layer <= config.hidden.size() ? Activated(sum) : sum);
      }
      inputs = outputs;
    }
    return wide + inputs[0];
  }
  double Loss(const std::vector<double>& at) const {
    double sum = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      const double z = Output(at, row), y = labels[row], t = static_cast<double>(targets[row]);
      const double own = HasClasses(config) ? std::log1p(std::exp(-std::fabs(z))) + std::max(z, 0.0) - y * z
                                            : (z - t) * (z - t);
      sum += own * (batch.weights == nullptr ? 1 : static_cast<double>(weights[row]));
    }
    return sum / kRows;
  }

  static constexpr int64_t kRows = 40;
  ModelConfig config;
  Layout layout;
  std::vector<int64_t> offsets{0};
  std::vector<uint32_t> places, columns;
  std::vector<float> values, numbers, targets, weights, parameters;
  std::vector<int32_t> labels;
  Batch batch;
};

void CheckGradient(const Problem& problem) {
  WideDeepModel model(problem.config, problem.layout, Problem::kRows, Reduce::kMean);
  std::vector<float> gradient(problem.parameters.size(), NAN);
  model.Begin(problem.parameters.data(), problem.batch, gradient.data(), false);
  std::vector<double> at(problem.parameters.begin(), problem.parameters.end());
  CHECK(static_cast<double>(model.End().loss) == doctest::Approx(problem.Loss(at)).epsilon(1e-6));
  double largest = 0, scale = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    constexpr double kStep = 1e-5;
    const double here = at[i];
    at[i] = here + kStep;
    const double above = problem.Loss(at);
    at[i] = here - kStep;
    const double slope = (above - problem.Loss(at)) / (2 * kStep);
    at[i] = here;
    largest = std::max(largest, std::fabs(slope - static_cast<double>(gradient[i])));
    scale = std::max(scale, std::fabs(slope));
  }
  CHECK(largest <= 1e-6 * std::max(1.0, scale));
}

TEST_CASE(
    "wide_deep: the gradient is that of central differences in double, through the layers to embeddings") {
  for (const ModelHead head : {ModelHead::kLogistic, ModelHead::kLinear}) {
    for (const Combine combine : {Combine::kSum, Combine::kJoin}) {
      for (const Activation activation : {Activation::kTanh, Activation::kSigmoid}) {
        const ModelConfig config = ConfigOf(head, combine, activation);
        CheckGradient(Problem(config));
        CheckGradient(Problem(config, false));
        Problem weighted(config);
        weighted.batch.weights = weighted.weights.data();
        weighted.batch.weight = Problem::kRows;
        CheckGradient(weighted);
      }
    }
  }
}

TEST_CASE("wide_deep: outputs are those of the definition, and a batch of no rows has a gradient of zeros") {
  for (const Combine combine : {Combine::kSum, Combine::kJoin}) {
    const Problem problem(ConfigOf(ModelHead::kLinear, combine, Activation::kTanh));
    WideDeepModel model(problem.config, problem.layout, Problem::kRows, Reduce::kMean);
    const std::vector<double> at(problem.parameters.begin(), problem.parameters.end());
    const auto outputs = model.Outputs(problem.parameters.data(), problem.batch);
    for (int64_t row = 0; row < Problem::kRows; ++row) {
      CHECK(static_cast<double>(outputs.row(row)[0]) ==
            doctest::Approx(problem.Output(at, row)).epsilon(1e-5));
    }
    std::vector<float> gradient(static_cast<size_t>(problem.layout.size), NAN);
    model.Begin(problem.parameters.data(), Batch(), gradient.data(), false);
    CHECK(std::all_of(gradient.begin(), gradient.end(), [](float value) { return value == 0; }));
  }
}

TEST_CASE(
    "wide_deep: layers have a range, weights and embeddings a table, and numbers are inputs of layers") {
  const ModelConfig join = ConfigOf(ModelHead::kLogistic, Combine::kJoin, Activation::kRelu);
  CHECK(LayerInputs(join) == kColumns * 3 + kNumbers);
  CHECK(LayerInputs(ConfigOf(ModelHead::kLogistic, Combine::kSum, Activation::kRelu)) == 3 + kNumbers);
  const Layout layout = LayoutOf(join);
  CHECK(layout.table->features() == kFeatures);
  CHECK(layout.table->width() == 4);
  CHECK(layout.size == 15 * 7 + 7 + 7 * 5 + 5 + 5 + 1);
  CHECK(layout.form.flat == layout.size);
  CHECK(layout.form.numbers.count == kNumbers);
  CHECK(layout.form.column_bits == 2);
  CHECK(layout.factors_name() == std::string("embeddings/E1"));
  ModelConfig rows = join;  // of a table without numbers
  rows.columns = 0;
  rows.combine = Combine::kSum;
  CHECK(LayoutOf(rows).table->features() == kFeatures + kNumbers);
  CHECK(LayerInputs(rows) == 3);
}

TEST_CASE("wide_deep: weights begin at 0, embeddings as normal says, layers as glorot does") {
  ModelConfig config = ConfigOf(ModelHead::kLogistic, Combine::kJoin, Activation::kRelu);
  config.init.kind = InitKind::kNormal;
  config.init.stddev = 0.01;
  config.init.output_bias = -1.5;
  const Layout layout = LayoutOf(config);
  const RowWeights initial(config, *layout.table);
  CHECK_FALSE(initial.AreZero());
  std::vector<float> row(4);
  double largest = 0;
  for (uint64_t feature = 0; feature < kFeatures; ++feature) {
    initial.Write(feature, row.data());
    CHECK(row[0] == 0);
    for (size_t i = 1; i < 4; ++i) largest = std::max(largest, std::fabs(static_cast<double>(row[i])));
  }
  CHECK(largest > 0.005);
  CHECK(largest < 0.06);
  initial.Write(kFeatures, row.data());
  CHECK(row == std::vector<float>{-1.5f, 0, 0, 0});
  std::vector<float> flat(static_cast<size_t>(layout.size));
  InitialValues(config, layout, {0, layout.size}, flat.data());
  const Variable& first = layout.Find("deep/W1");
  const auto begin = flat.begin() + first.offset;
  const double limit = std::sqrt(6.0 / static_cast<double>(first.rows + first.cols));
  CHECK(static_cast<double>(*std::max_element(begin, begin + first.size())) > 0.9 * limit);
  CHECK(static_cast<double>(*std::max_element(begin, begin + first.size())) <= limit);
  CHECK(flat[static_cast<size_t>(layout.Find("deep/b3").offset)] == 0);
}

TEST_CASE("wide_deep: the contributions of features and numbers add up to the output with that of zeros") {
  for (const Combine combine : {Combine::kJoin, Combine::kSum}) {
    for (const Activation activation : {Activation::kTanh, Activation::kSigmoid}) {
      const Problem problem(ConfigOf(ModelHead::kLinear, combine, activation));
      const std::vector<double> at(problem.parameters.begin(), problem.parameters.end());
      Contributions contributions(problem.config, problem.layout);
      RowShares shares;
      for (int64_t row = 0; row < problem.batch.rows; ++row) {
        contributions.Of(problem.parameters.data(), problem.batch, row, 0, &shares);
        REQUIRE(shares.features.size() ==
                static_cast<size_t>(problem.offsets[row + 1] - problem.offsets[row]));
        REQUIRE(shares.numbers.size() == static_cast<size_t>(kNumbers));
        double sum = shares.bias;
        for (const double one : shares.features) sum += one;
        for (const double one : shares.numbers) sum += one;
        CHECK(sum == doctest::Approx(problem.Output(at, row)).epsilon(1e-9));
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
