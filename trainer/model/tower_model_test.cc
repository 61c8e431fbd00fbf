#include "trainer/model/tower_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "trainer/model/model_test_util.h"

namespace dtrain {
namespace {

// `count` rows of 20 features for an mlp of five classes.
DeviceProblem Mlp(int64_t hidden, int64_t count) {
  return DeviceProblem(ModelKind::kMlp, 20, {hidden}, 5, count);
}

TEST_CASE("towers: the gradient of a batch is that of one device, however many rows the last tower gets") {
  const DeviceProblem problem = Mlp(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  for (const int64_t devices : {2, 3, 8}) {
    const int64_t each = (31 + devices - 1) / devices;
    const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, each, devices);
    for (int64_t rows = 1; rows <= 31; ++rows) {
      for (const bool as_bytes : {false, true}) {
        CAPTURE(devices);
        CAPTURE(rows);
        const Batch batch = as_bytes ? problem.Bytes(31 - rows, rows) : problem.Floats(31 - rows, rows);
        const Step expected = StepOf(*alone, problem.parameters, batch);
        const Step result = StepOf(*towers, problem.parameters, batch);
        CheckSame(result, expected);
      }
    }
  }
}

TEST_CASE("towers: a gradient large enough to be summed by all towers is the same") {
  const DeviceProblem problem = Mlp(15000, 4);  // 390,005 values
  REQUIRE(problem.layout.size > 1 << 18);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 4);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 2, 2);
  for (const int64_t rows : {3, 4}) {
    const Step expected = StepOf(*alone, problem.parameters, problem.Floats(0, rows));
    const Step result = StepOf(*towers, problem.parameters, problem.Floats(0, rows));
    // Logits are sums of 15,000 values: of about 100.
    CHECK(LargestDifference(result.gradient, expected.gradient) <= 1e-3);
    double magnitude = 0;
    for (const float value : expected.gradient) magnitude = std::max<double>(magnitude, std::fabs(value));
    CHECK(magnitude > 0.1);
  }
}

TEST_CASE("towers: the same bits every time") {
  const DeviceProblem problem = Mlp(7, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 8, 4);
  const Step first = StepOf(*towers, problem.parameters, problem.Floats(0, 31));
  for (int i = 0; i < 100; ++i) {
    const Step again = StepOf(*towers, problem.parameters, problem.Floats(0, 31));
    REQUIRE(again.gradient == first.gradient);
    REQUIRE(again.loss == first.loss);
  }
}

TEST_CASE("towers: rows of the first tower alone give the bits of one device") {
  const DeviceProblem problem = Mlp(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 10, 3);
  StepOf(*towers, problem.parameters, problem.Floats(0, 30));
  for (const int64_t rows : {0, 1, 10}) {
    const Step expected = StepOf(*alone, problem.parameters, problem.Floats(0, rows));
    const Step result = StepOf(*towers, problem.parameters, problem.Floats(0, rows));
    CHECK(result.gradient == expected.gradient);
    CHECK(result.loss == expected.loss);
  }
}

TEST_CASE("towers: an evaluation counts all rows") {
  const DeviceProblem problem = Mlp(7, 31);
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
  const DeviceProblem problem = Mlp(7, 31);
  const std::unique_ptr<Model> alone = MakeModel(problem.config, problem.layout, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 12, 3);
  CHECK(towers->outputs() == alone->outputs());
  std::vector<float> expected(static_cast<size_t>(31 * alone->outputs())), result(expected.size());
  alone->Evaluate(problem.parameters.data(), problem.Floats(0, 31), expected.data());
  towers->Evaluate(problem.parameters.data(), problem.Floats(0, 31), result.data());
  for (size_t i = 0; i < expected.size(); ++i) CHECK(result[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("towers: a loss that is not finite on one device is not finite") {
  const DeviceProblem problem = Mlp(7, 31);
  const std::unique_ptr<Model> towers = MakeTowers(problem.config, problem.layout, 16, 2);
  DeviceProblem broken = problem;
  broken.floats[20 * 20] = NAN;  // of row 20, which the second tower gets
  CHECK_FALSE(std::isfinite(StepOf(*towers, broken.parameters, broken.Floats(0, 31)).loss));
}

}  // namespace
}  // namespace dtrain
