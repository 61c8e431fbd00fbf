#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

ModelConfig Softmax(InitKind kind, BiasInit bias) {
  ModelConfig config;
  config.kind = ModelKind::kSoftmax;
  config.inputs = 31;
  config.outputs = 10;
  config.init.kind = kind;
  config.init.value = 2;
  config.init.bias = bias;
  return config;
}

Layout LayoutOf(const ModelConfig& config, int ps_count = 1) {
  return PlaceVariables(ModelVariables(config), ps_count, PlacementConfig());
}

std::vector<float> AllValues(const ModelConfig& config, const Layout& layout) {
  std::vector<float> values(layout.size);
  InitialValues(config, layout, {0, layout.size}, values.data());
  return values;
}

std::vector<float> ValuesOf(const std::string& name, const ModelConfig& config) {
  const Layout layout = LayoutOf(config);
  const std::vector<float> all = AllValues(config, layout);
  const Variable& variable = layout.Find(name);
  return {all.begin() + variable.offset, all.begin() + variable.offset + variable.size()};
}

TEST_CASE("initial values: the same bits for any cut of the range") {
  for (const InitKind kind : {InitKind::kZeros, InitKind::kConstant, InitKind::kNormal, InitKind::kGlorot}) {
    const ModelConfig config = Softmax(kind, BiasInit::kSame);
    const Layout layout = LayoutOf(config);
    const std::vector<float> whole = AllValues(config, layout);
    for (int64_t cut = 0; cut <= layout.size; ++cut) {
      std::vector<float> parts(layout.size);
      InitialValues(config, layout, {0, cut}, parts.data());
      InitialValues(config, layout, {cut, layout.size}, parts.data() + cut);
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("initial values: a variable is the same wherever the placement puts it") {
  const ModelConfig config = Softmax(InitKind::kNormal, BiasInit::kSame);
  const Layout one = LayoutOf(config);
  Layout swapped = one;
  swapped.variables = {one.Find("biases/b1"), one.Find("weights/W1")};
  swapped.variables[0].offset = 0;
  swapped.variables[1].offset = swapped.variables[0].size();
  const std::vector<float> here = AllValues(config, one), there = AllValues(config, swapped);
  for (const char* const name : {"weights/W1", "biases/b1"}) {
    for (int64_t i = 0; i < one.Find(name).size(); ++i) {
      CHECK(there[swapped.Find(name).offset + i] == here[one.Find(name).offset + i]);
    }
  }
}

TEST_CASE("initial values: biases are zero, or like the weights where asked") {
  for (const float value : ValuesOf("biases/b1", Softmax(InitKind::kNormal, BiasInit::kZeros)))
    CHECK(value == 0);
  for (const float value : ValuesOf("biases/b1", Softmax(InitKind::kConstant, BiasInit::kSame)))
    CHECK(value == 2);
  for (const float value : ValuesOf("weights/W1", Softmax(InitKind::kConstant, BiasInit::kZeros)))
    CHECK(value == 2);
  for (const float value : ValuesOf("biases/b1", Softmax(InitKind::kNormal, BiasInit::kSame)))
    CHECK(value != 0);
}

TEST_CASE("initial values: unset means zeros for models of one layer") {
  ModelConfig config = Softmax(InitKind::kZeros, BiasInit::kSame);
  config.init.kind.reset();
  for (const float value : ValuesOf("weights/W1", config)) CHECK(value == 0);
}

TEST_CASE("initial values: normal has the asked deviation, and the seed matters") {
  ModelConfig config = Softmax(InitKind::kNormal, BiasInit::kZeros);
  config.inputs = 1000;
  config.init.stddev = 0.5;
  const std::vector<float> values = ValuesOf("weights/W1", config);
  double sum = 0, square = 0;
  for (const float value : values) {
    sum += value;
    square += static_cast<double>(value) * value;
  }
  // Four standard deviations over 10,000 values.
  CHECK(std::abs(sum / 10000) < 0.02);
  CHECK(std::abs(std::sqrt(square / 10000) - 0.5) < 0.015);
  config.init.seed = 2;
  CHECK(ValuesOf("weights/W1", config) != values);
}

TEST_CASE("initial values: glorot is uniform up to the limit of the layer's fans") {
  ModelConfig config = Softmax(InitKind::kGlorot, BiasInit::kZeros);
  config.inputs = 1000;
  const double limit = std::sqrt(6.0 / 1010);
  double largest = 0, square = 0;
  for (const float value : ValuesOf("weights/W1", config)) {
    largest = std::max(largest, std::abs(static_cast<double>(value)));
    square += static_cast<double>(value) * value;
  }
  CHECK(largest <= limit);
  CHECK(largest > 0.99 * limit);
  CHECK(square / 10000 == doctest::Approx(limit * limit / 3).epsilon(0.05));
}

TEST_CASE("initial values: output_bias is that of the last layer alone") {
  ModelConfig config = Softmax(InitKind::kNormal, BiasInit::kZeros);
  config.init.output_bias = 2.5;
  CHECK(ValuesOf("biases/b1", config) == std::vector<float>(10, 2.5f));
  config.kind = ModelKind::kMlp;
  config.hidden = {3};
  CHECK(ValuesOf("biases/b1", config) == std::vector<float>(3, 0.0f));
  CHECK(ValuesOf("biases/b2", config) == std::vector<float>(10, 2.5f));
  config.init.bias = BiasInit::kSame;
  CHECK(ValuesOf("biases/b2", config) != std::vector<float>(10, 2.5f));
}

}  // namespace
}  // namespace dtrain
