// What a model's variables are, and how its results add up.
#include <fmt/format.h>

#include "base/check.h"
#include "trainer/model/model.h"

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
  return variables;
}

int64_t ValuesPerRow(const ModelConfig& config) {
  int64_t values = *config.outputs;
  for (size_t i = 0; i + 1 < LayerCount(config); ++i) values += 2 * config.hidden[i];
  return values;
}

float Model::Gradient(const float* parameters, const Batch& batch, float* gradient, int64_t* correct) {
  Begin(parameters, batch, gradient, correct != nullptr);
  const StepResult result = End();
  if (correct != nullptr) *correct = result.correct;
  return result.loss;
}

void Evaluation::Add(const Evaluation& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  rows += other.rows;
  classifies = classifies || other.classifies;
}

}  // namespace dtrain
