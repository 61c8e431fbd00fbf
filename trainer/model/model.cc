#include "trainer/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace dtrain {
namespace {

size_t LayerCount(const ModelConfig& config) {
  return config.kind == ModelKind::kMlp ? config.hidden.size() + 1 : 1;
}

}  // namespace

std::vector<Variable> ModelVariables(const ModelConfig& config) {
  DT_CHECK(config.inputs.has_value() && config.outputs.has_value());
  std::vector<Variable> variables;
  int64_t inputs = *config.inputs;
  const size_t layers = LayerCount(config);
  for (size_t i = 0; i < layers; ++i) {
    Variable weights;
    weights.name = fmt::format("weights/W{}", i + 1);
    weights.rows = weights.fan_in = inputs;
    weights.cols = weights.fan_out = i + 1 == layers ? *config.outputs : config.hidden[i];
    Variable biases = weights;
    biases.name = fmt::format("biases/b{}", i + 1);
    biases.rows = weights.cols;
    biases.cols = 1;
    biases.bias = true;
    inputs = weights.cols;
    variables.push_back(weights);
    variables.push_back(biases);
  }
  if (config.kind == ModelKind::kFm) {
    Variable factors = variables.front();
    factors.name = kFactorsName;
    factors.cols = factors.fan_out = config.factors;
    variables.push_back(factors);
  }
  return variables;
}

int64_t ValuesPerRow(const ModelConfig& config) {
  int64_t values = *config.outputs;
  for (size_t i = 0; i + 1 < LayerCount(config); ++i) values += 2 * config.hidden[i];
  if (config.kind == ModelKind::kFm) values += config.factors;
  return values;
}

void Evaluation::Add(const Evaluation& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  rows += other.rows;
  weight += other.weight;
  correct_weight += other.correct_weight;
  classifies = classifies || other.classifies;
}

// InitialValues (model.h): element i of a variable is a function of (seed, name, i) alone.
namespace {

InitKind KindFor(const ModelConfig& config, const Variable& variable) {
  if (variable.bias && config.init.bias == BiasInit::kZeros) return InitKind::kZeros;
  // Of a factorization machine only the factors are drawn.
  if (config.kind == ModelKind::kFm && variable.name != kFactorsName) return InitKind::kZeros;
  // A model of one layer may start from zero. With hidden layers, equal units would stay equal.
  return config.init.kind.value_or(config.kind == ModelKind::kMlp ? InitKind::kGlorot : InitKind::kZeros);
}

bool IsOutputBias(const ModelConfig& model, const Variable& variable) {
  return variable.bias && variable.name == fmt::format("biases/b{}", LayerCount(model));
}

}  // namespace

void InitialElements(const ModelConfig& model, const Variable& variable, int64_t begin, int64_t end,
                     float* values) {
  const InitConfig& config = model.init;
  const CounterRandom random = CounterRandom(config.seed).Stream(variable.name);
  const double limit = std::sqrt(6.0 / static_cast<double>(variable.fan_in + variable.fan_out));
  switch (KindFor(model, variable)) {
    case InitKind::kZeros:
      std::fill(values, values + (end - begin),
                IsOutputBias(model, variable) ? static_cast<float>(config.output_bias) : 0.0f);
      return;
    case InitKind::kConstant:
      std::fill(values, values + (end - begin), static_cast<float>(config.value));
      return;
    case InitKind::kNormal:
      for (int64_t i = begin; i < end; ++i) *values++ = static_cast<float>(config.stddev * random.Normal(i));
      return;
    case InitKind::kGlorot:  // uniform in +-limit; Glorot and Bengio (2010)
      for (int64_t i = begin; i < end; ++i) {
        *values++ = static_cast<float>(limit * (2 * random.Uniform(i) - 1));
      }
      return;
  }
}

RowWeights::RowWeights(const ModelConfig& config, const TableLayout& table)
    : config_(config), features_(static_cast<uint64_t>(table.features())), width_(table.width()) {
  for (const Variable& variable : ModelVariables(config)) {
    variable.bias ? void(biases_ = variable) : of_feature_.push_back(variable);
  }
  const InitKind kind = KindFor(config, of_feature_.back());
  if (kind == InitKind::kZeros) constant_ = 0.0f;
  if (kind == InitKind::kConstant && of_feature_.size() == 1)
    constant_ = static_cast<float>(config.init.value);
  std::vector<float> bias(static_cast<size_t>(width_));
  Write(features_, bias.data());
  zero_bias_ = std::all_of(bias.begin(), bias.end(), [](float value) { return value == 0; });
}

void RowWeights::Write(uint64_t feature, float* values) const {
  if (feature >= features_) {
    std::fill_n(values, width_, 0.0f);
    if (feature == features_) InitialElements(config_, biases_, 0, biases_.rows, values);
  } else if (constant_) {
    std::fill_n(values, width_, *constant_);
  } else {
    for (const Variable& variable : of_feature_) {
      // Keys of a hash table are any numbers: of two that differ by as much, the values are the same.
      constexpr uint64_t kElements = uint64_t{1} << 62;
      const auto first =
          static_cast<int64_t>(feature * static_cast<uint64_t>(variable.cols) & (kElements - 1));
      InitialElements(config_, variable, first, first + variable.cols, values);
      values += variable.cols;
    }
  }
}

void InitialValues(const ModelConfig& config, const Layout& layout, Range range, float* values) {
  DT_CHECK(range.begin >= 0 && range.end <= layout.size, range.begin, range.end, layout.size);
  for (const Variable& variable : layout.variables) {
    const int64_t begin = std::max(range.begin, variable.offset);
    const int64_t end = std::min(range.end, variable.offset + variable.size());
    if (begin >= end) continue;
    InitialElements(config, variable, begin - variable.offset, end - variable.offset,
                    values + (begin - range.begin));
  }
}

}  // namespace dtrain
