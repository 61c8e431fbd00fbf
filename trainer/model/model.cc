#include "trainer/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "trainer/config/model_config.h"

namespace dtrain {
namespace {

size_t LayerCount(const ModelConfig& config) { return HasLayers(config) ? config.hidden.size() + 1 : 1; }

void AddLayer(LayerNames names, int64_t inputs, int64_t outputs, std::vector<Variable>* variables) {
  Variable weights;
  weights.name = std::move(names.weights);
  weights.rows = weights.fan_in = inputs;
  weights.cols = weights.fan_out = outputs;
  Variable biases = weights;
  biases.name = std::move(names.biases);
  biases.rows = outputs;
  biases.cols = 1;
  biases.bias = true;
  variables->push_back(weights);
  variables->push_back(biases);
}

void AddFactors(const char* name, int64_t factors, std::vector<Variable>* variables) {
  Variable added = variables->front();
  added.name = name;
  added.cols = added.fan_out = factors;
  variables->push_back(added);
}

}  // namespace

LayerNames LayerNamesOf(const ModelConfig& config, size_t number) {
  const bool deep = config.kind == ModelKind::kWideDeep;  // others have these names without layers
  return {fmt::format("{}/W{}", deep ? "deep" : "weights", number),
          fmt::format("{}/b{}", deep ? "deep" : "biases", number)};
}

int64_t LayerInputs(const ModelConfig& config) {
  if (config.kind != ModelKind::kWideDeep) return *config.inputs;
  const int64_t columns = config.combine == Combine::kJoin ? config.columns : 1;
  return columns * config.embedding + NumbersOf(config).count;
}

std::vector<Variable> ModelVariables(const ModelConfig& config) {
  DT_CHECK(config.inputs.has_value() && config.outputs.has_value());
  std::vector<Variable> variables;
  int64_t inputs = LayerInputs(config);
  const size_t layers = LayerCount(config);
  for (size_t i = 0; i < layers; ++i) {
    const int64_t outputs = i + 1 == layers ? *config.outputs : config.hidden[i];
    AddLayer(LayerNamesOf(config, i + 1), inputs, outputs, &variables);
    inputs = outputs;
  }
  if (config.kind == ModelKind::kFm) AddFactors(kFactorsName, config.factors, &variables);
  return variables;
}

std::vector<Variable> TableVariables(const ModelConfig& config) {
  if (config.kind != ModelKind::kWideDeep) return ModelVariables(config);
  std::vector<Variable> variables;
  AddLayer({kTableWeights, kTableBiases}, TableFeatures(config), *config.outputs, &variables);
  AddFactors(kEmbeddingsName, config.embedding, &variables);
  return variables;
}

int64_t ValuesPerRow(const ModelConfig& config) {
  int64_t values = *config.outputs;
  for (size_t i = 0; i + 1 < LayerCount(config); ++i) values += 2 * config.hidden[i];
  if (config.kind == ModelKind::kFm) values += config.factors;
  if (config.kind == ModelKind::kWideDeep) values += *config.outputs + 2 * LayerInputs(config);
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

namespace {

InitKind KindFor(const ModelConfig& config, const Variable& variable) {
  if (variable.bias && config.init.bias == BiasInit::kZeros) return InitKind::kZeros;
  // Of a factorization machine only the factors are drawn, and of wide_deep embeddings and layers.
  if (config.kind == ModelKind::kFm && variable.name != kFactorsName) return InitKind::kZeros;
  if (config.kind == ModelKind::kWideDeep) {
    if (variable.name == kEmbeddingsName) return config.init.kind.value_or(InitKind::kNormal);
    return variable.name == kTableWeights || variable.bias ? InitKind::kZeros : InitKind::kGlorot;
  }
  // A model of one layer may start from zero. With hidden layers, equal units would stay equal.
  return config.init.kind.value_or(config.kind == ModelKind::kMlp ? InitKind::kGlorot : InitKind::kZeros);
}

bool IsOutputBias(const ModelConfig& model, const Variable& variable) {
  if (!variable.bias) return false;
  const bool deep = model.kind == ModelKind::kWideDeep;
  return variable.name == (deep ? kTableBiases : LayerNamesOf(model, LayerCount(model)).biases);
}

}  // namespace

VariableStart::VariableStart(const ModelConfig& model, const Variable& variable)
    : cols_(variable.cols), random_(CounterRandom(model.init.seed).Stream(variable.name)) {
  const InitKind kind = KindFor(model, variable);
  if (kind == InitKind::kZeros) {
    constant_ = static_cast<float>(IsOutputBias(model, variable) ? model.init.output_bias : 0);
  } else if (kind == InitKind::kConstant) {
    constant_ = static_cast<float>(model.init.value);
  }
  normal_ = kind == InitKind::kNormal;
  // glorot: uniform in +-limit; Glorot and Bengio (2010)
  scale_ =
      normal_ ? model.init.stddev : std::sqrt(6.0 / static_cast<double>(variable.fan_in + variable.fan_out));
}

void VariableStart::Write(int64_t begin, int64_t end, float* values) const {
  if (constant_) return std::fill(values, values + (end - begin), *constant_);
  for (auto i = static_cast<uint64_t>(begin); i < static_cast<uint64_t>(end); ++i) {
    *values++ = static_cast<float>(scale_ * (normal_ ? random_.Normal(i) : 2 * random_.Uniform(i) - 1));
  }
}

RowWeights::RowWeights(const ModelConfig& config, const TableLayout& table)
    : bias_(static_cast<size_t>(table.width())),
      features_(static_cast<uint64_t>(table.features())),
      width_(table.width()) {
  for (const Variable& variable : TableVariables(config)) {
    const VariableStart start(config, variable);
    variable.bias ? start.Write(0, variable.rows, bias_.data()) : of_feature_.push_back(start);
  }
  constant_ = of_feature_.front().constant();
  for (const VariableStart& start : of_feature_) {
    if (start.constant() != constant_) constant_.reset();
  }
}

void RowWeights::Write(uint64_t feature, float* values) const {
  if (feature == features_) {
    std::copy(bias_.begin(), bias_.end(), values);
  } else if (feature > features_) {
    std::fill_n(values, width_, 0.0f);
  } else if (constant_) {
    std::fill_n(values, width_, *constant_);
  } else {
    for (const VariableStart& start : of_feature_) {
      // Keys of a hash table are any numbers: of two that differ by as much, the values are the same.
      constexpr uint64_t kElements = uint64_t{1} << 62;
      const auto first =
          static_cast<int64_t>(feature * static_cast<uint64_t>(start.cols()) & (kElements - 1));
      start.Write(first, first + start.cols(), values);
      values += start.cols();
    }
  }
}

void InitialValues(const ModelConfig& config, const Layout& layout, Range range, float* values) {
  DT_CHECK(range.begin >= 0 && range.end <= layout.size, range.begin, range.end, layout.size);
  for (const Variable& variable : layout.variables) {
    const int64_t begin = std::max(range.begin, variable.offset);
    const int64_t end = std::min(range.end, variable.offset + variable.size());
    if (begin >= end) continue;
    VariableStart(config, variable)
        .Write(begin - variable.offset, end - variable.offset, values + (begin - range.begin));
  }
}

}  // namespace dtrain
