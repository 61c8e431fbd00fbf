#include "trainer/model/tower_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "trainer/model/model_test_util.h"

namespace dtrain {
namespace {

// A model, a set of rows for it and weights, all random.
struct Problem {
  Problem(int64_t hidden, int64_t row_count) : rows(row_count) {
    config.kind = ModelKind::kMlp;
    config.inputs = 20;
    config.hidden = {hidden};
    config.outputs = 5;
    layout = PlaceVariables(ModelVariables(config), 1, {});
    parameters.resize(static_cast<size_t>(layout.size));
    const CounterRandom random = CounterRandom(3);
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] = static_cast<float>(random.Stream("weights").Normal(i));
    }
    for (int64_t i = 0; i < rows * 20; ++i) {
      inputs.push_back(static_cast<float>(random.Stream("inputs").Normal(static_cast<uint64_t>(i))));
      bytes.push_back(static_cast<uint8_t>(random.Stream("bytes").Below(static_cast<uint64_t>(i), 256)));
    }
    for (int64_t i = 0; i < rows; ++i) {
      labels.push_back(static_cast<int32_t>(random.Stream("labels").Below(static_cast<uint64_t>(i), 5)));
      numbers.push_back(rows - 1 - i);
    }
  }
  Batch Floats(int64_t first, int64_t count) const {
    Batch batch;
    batch.inputs = inputs.data() + first * 20;
    batch.rows = count;
    batch.columns = 20;
    batch.labels = labels.data() + first;
    return batch;
  }
  Batch Bytes(int64_t first, int64_t count) const {
    Batch batch = Floats(first, count);
    batch.inputs = nullptr;
    batch.bytes = {{bytes.data(), rows, 20}, {numbers.data() + first, count}};
    return batch;
  }

  const int64_t rows;
  ModelConfig config;
  Layout layout;
  std::vector<float> parameters, inputs;
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  std::vector<int64_t> numbers;  // of the rows of bytes
};

struct Result {
  float loss = 0;
  int64_t correct = 0;
  std::vector<float> gradient;
};

Result GradientOf(Model& model, const Problem& problem, const Batch& batch) {
  Result result;
  result.gradient.assign(problem.parameters.size(), NAN);
  result.loss = Gradient(model, problem.parameters.data(), batch, result.gradient.data(), &result.correct);
  return result;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = difference <= largest ? largest : difference;
  }
  return largest;
}

// Gradients here are at most about 1, sums of up to 31 rows: 2^-20 is some roundings of them.
constexpr double kTolerance = 0x1p-20;

TEST_CASE("towers: the gradient of a batch is that of one device, however many rows the last tower gets") {
  const Problem problem(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  for (const int64_t devices : {2, 3, 8}) {
    const int64_t each = (31 + devices - 1) / devices;
    const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, each, devices);
    for (int64_t rows = 1; rows <= 31; ++rows) {
      for (const bool as_bytes : {false, true}) {
        CAPTURE(devices);
        CAPTURE(rows);
        const Batch batch = as_bytes ? problem.Bytes(31 - rows, rows) : problem.Floats(31 - rows, rows);
        const Result expected = GradientOf(*alone, problem, batch);
        const Result result = GradientOf(*towers, problem, batch);
        CHECK(LargestDifference(result.gradient, expected.gradient) <= kTolerance);
        CHECK(result.loss == doctest::Approx(expected.loss).epsilon(1e-6));
        CHECK(result.correct == expected.correct);
      }
    }
  }
}

TEST_CASE("towers: a gradient large enough to be summed by all towers is the same") {
  const Problem problem(15000, 4);  // 390,005 values
  REQUIRE(problem.layout.size > 1 << 18);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 4);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 2, 2);
  for (const int64_t rows : {3, 4}) {
    const Result expected = GradientOf(*alone, problem, problem.Floats(0, rows));
    const Result result = GradientOf(*towers, problem, problem.Floats(0, rows));
    // Logits are sums of 15,000 values: of about 100.
    CHECK(LargestDifference(result.gradient, expected.gradient) <= 1e-3);
    double magnitude = 0;
    for (const float value : expected.gradient) magnitude = std::max<double>(magnitude, std::fabs(value));
    CHECK(magnitude > 0.1);
  }
}

TEST_CASE("towers: the same bits every time") {
  const Problem problem(7, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 8, 4);
  const Result first = GradientOf(*towers, problem, problem.Floats(0, 31));
  for (int i = 0; i < 100; ++i) {
    const Result again = GradientOf(*towers, problem, problem.Floats(0, 31));
    REQUIRE(again.gradient == first.gradient);
    REQUIRE(again.loss == first.loss);
  }
}

TEST_CASE("towers: rows of the first tower alone give the bits of one device") {
  const Problem problem(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 10, 3);
  GradientOf(*towers, problem, problem.Floats(0, 30));
  for (const int64_t rows : {0, 1, 10}) {
    const Result expected = GradientOf(*alone, problem, problem.Floats(0, rows));
    const Result result = GradientOf(*towers, problem, problem.Floats(0, rows));
    CHECK(result.gradient == expected.gradient);
    CHECK(result.loss == expected.loss);
  }
}

TEST_CASE("towers: an evaluation counts all rows") {
  const Problem problem(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 12, 3);
  for (const int64_t rows : {5, 24, 31}) {
    const Evaluation expected = alone->Evaluate(problem.parameters.data(), problem.Floats(0, rows));
    const Evaluation result = towers->Evaluate(problem.parameters.data(), problem.Floats(0, rows));
    CHECK(result.rows == rows);
    CHECK(result.correct == expected.correct);
    CHECK(result.classifies);
    CHECK(result.loss_sum == doctest::Approx(expected.loss_sum).epsilon(1e-6));
  }
}

TEST_CASE("towers: an evaluation's outputs are those of one device, row by row") {
  const Problem problem(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 12, 3);
  CHECK(towers->outputs() == alone->outputs());
  std::vector<float> expected(static_cast<size_t>(31 * alone->outputs())), result(expected.size());
  alone->Evaluate(problem.parameters.data(), problem.Floats(0, 31), expected.data());
  towers->Evaluate(problem.parameters.data(), problem.Floats(0, 31), result.data());
  for (size_t i = 0; i < expected.size(); ++i) CHECK(result[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("towers: a loss that is not finite on one device is not finite") {
  const Problem problem(7, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 16, 2);
  Problem broken = problem;
  broken.inputs[20 * 20] = NAN;  // of row 20, which the second tower gets
  CHECK_FALSE(std::isfinite(GradientOf(*towers, broken, broken.Floats(0, 31)).loss));
}

}  // namespace
}  // namespace dtrain
