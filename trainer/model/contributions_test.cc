// What features add to the outputs of dense models; fm and wide_deep are in the tests of these.
#include "trainer/model/contributions.h"

#include <doctest/doctest.h>

#include <vector>

#include "trainer/model/dense_model.h"
#include "trainer/model/model_test_util.h"

namespace dtrain {
namespace {

double SumOf(const RowShares& shares) {
  double sum = shares.bias;
  for (const double one : shares.features) sum += one;
  return sum;
}

TEST_CASE("contributions: they add up to each output of each kind of dense model, of floats and of bytes") {
  for (DeviceProblem& problem : DeviceProblems()) {
    for (const Activation activation : {Activation::kSigmoid, Activation::kTanh, Activation::kRelu}) {
      problem.config.activation = activation;
      CAPTURE(KindName(problem.config.kind));
      DenseModel model(problem.config, problem.layout, problem.rows);
      Contributions contributions(problem.config, problem.layout);
      RowShares shares;
      for (const Batch& batch : {problem.Floats(0, problem.rows), problem.Bytes(0, problem.rows)}) {
        const gpu::MatrixView<const float> outputs = model.Outputs(problem.parameters.data(), batch);
        for (int64_t row = 0; row < batch.rows; ++row) {
          for (int64_t output = 0; output < outputs.cols; ++output) {
            contributions.Of(problem.parameters.data(), batch, row, output, &shares);
            CHECK(shares.features.size() == static_cast<size_t>(problem.columns));
            CHECK(std::fabs(SumOf(shares) - static_cast<double>(outputs.row(row)[output])) < kTolerance);
          }
        }
      }
    }
  }
}

TEST_CASE("contributions: of a linear model a feature's is its weight times its value, also of sparse rows") {
  const DeviceProblem problem(ModelKind::kSoftmax, 4, {}, 3, 1);
  const Variable &weights = problem.layout.Find("weights/W1"), &biases = problem.layout.Find("biases/b1");
  const std::vector<int64_t> offsets = {0, 3};
  const std::vector<uint64_t> ids = {2, 0, 2};
  const std::vector<float> values = {1.5f, -2, 3};
  Batch batch;
  batch.rows = 1;
  batch.columns = 4;
  batch.sparse.offsets = offsets.data();
  batch.sparse.ids = ids.data();
  batch.sparse.values = values.data();
  RowShares shares;
  Contributions(problem.config, problem.layout).Of(problem.parameters.data(), batch, 0, 1, &shares);
  REQUIRE(shares.features.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const auto at = static_cast<size_t>(weights.offset) + ids[i] * 3 + 1;
    const auto weight = static_cast<double>(problem.parameters[at]);
    CHECK(shares.features[i] == doctest::Approx(weight * static_cast<double>(values[i])).epsilon(1e-12));
  }
  CHECK(shares.bias == static_cast<double>(problem.parameters[static_cast<size_t>(biases.offset) + 1]));
}

// A hidden unit that zeros switch on and the row switches off: h = relu(x1 - x2 + 0.5), output = 2 h + 1. The
// gradient at the row is 0, and says nothing; the rule gives the second input the whole difference.
TEST_CASE("contributions: the rescale rule shares out the way from zeros to the row") {
  ModelConfig config;
  config.kind = ModelKind::kMlp;
  config.head = ModelHead::kLinear;
  config.activation = Activation::kRelu;
  config.inputs = 2;
  config.outputs = 1;
  config.hidden = {1};
  const Layout layout = PlaceVariables(ModelVariables(config), 1, {});
  std::vector<float> parameters(static_cast<size_t>(layout.size));
  const auto set = [&](const char* name, std::vector<float> values) {
    std::copy(values.begin(), values.end(), parameters.begin() + layout.Find(name).offset);
  };
  set("weights/W1", {1, -1});
  set("biases/b1", {0.5f});
  set("weights/W2", {2});
  set("biases/b2", {1});
  const auto shares_of = [&](std::vector<float> inputs) {
    Batch batch;
    batch.rows = 1;
    batch.columns = 2;
    batch.inputs = inputs.data();
    RowShares shares;
    Contributions(config, layout).Of(parameters.data(), batch, 0, 0, &shares);
    return shares;
  };
  const RowShares off = shares_of({0, 2});
  CHECK(off.bias == 2);
  CHECK(off.features == std::vector<double>{0, -1});
  // From 0.5 to -0.5 through the kink: of a step of -1 half comes through.
  const RowShares both = shares_of({1, 2});
  CHECK(both.features == std::vector<double>{1, -2});
}

}  // namespace
}  // namespace dtrain
