#include "trainer/model/dense_model.h"

#include <fmt/format.h>

#include "base/check.h"

namespace dtrain {
namespace {

std::string WeightsName(size_t layer) { return fmt::format("weights/W{}", layer + 1); }
std::string BiasesName(size_t layer) { return fmt::format("biases/b{}", layer + 1); }

size_t LayerCount(const ModelConfig& config) {
  return config.kind == ModelKind::kMlp ? config.hidden.size() + 1 : 1;
}

std::vector<DenseLayer> FindLayers(const ModelConfig& config, const Layout& layout) {
  std::vector<DenseLayer> layers;
  for (size_t i = 0; i < LayerCount(config); ++i) {
    const Variable& weights = layout.Find(WeightsName(i));
    layers.push_back({weights.rows, weights.cols, weights.offset, layout.Find(BiasesName(i)).offset});
  }
  return layers;
}

gpu::Activation KernelOf(Activation activation) {
  switch (activation) {
    case Activation::kSigmoid:
      return gpu::Activation::kSigmoid;
    case Activation::kTanh:
      return gpu::Activation::kTanh;
    case Activation::kRelu:
      break;
  }
  return gpu::Activation::kRelu;
}

gpu::Span<float> All(gpu::MatrixView<float> matrix) { return {matrix.data, matrix.size()}; }

}  // namespace

std::vector<Variable> ModelVariables(const ModelConfig& config) {
  DT_CHECK(config.inputs.has_value() && config.outputs.has_value());
  std::vector<Variable> variables;
  int64_t inputs = *config.inputs;
  const size_t layers = LayerCount(config);
  for (size_t i = 0; i < layers; ++i) {
    Variable weights;
    weights.name = WeightsName(i);
    weights.rows = weights.fan_in = inputs;
    weights.cols = weights.fan_out = i + 1 == layers ? *config.outputs : config.hidden[i];
    Variable biases = weights;
    biases.name = BiasesName(i);
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

std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Layout& layout, int64_t max_rows) {
  return std::make_unique<DenseModel>(config, layout, max_rows);
}

void Evaluation::Add(const Evaluation& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  rows += other.rows;
  classifies = classifies || other.classifies;
}

DenseModel::DenseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows)
    : kind_(config.kind),
      activation_(KernelOf(config.activation)),
      layout_(layout),
      max_rows_(max_rows),
      layers_(FindLayers(config, layout)),
      stream_(gpu::Backend::kCpu) {
  DT_CHECK(HasOutputPerClass(kind_) || layers_.back().outputs == 1, layers_.back().outputs);
  for (const DenseLayer& layer : layers_) {
    outputs_.emplace_back(static_cast<size_t>(max_rows * layer.outputs));
    if (outputs_.size() < layers_.size()) slopes_.emplace_back(outputs_.back().size());
  }
}

float DenseModel::Gradient(const float* parameters, const Batch& batch, float* gradient, int64_t* correct) {
  const Inputs inputs = InputsOf(batch);
  const gpu::MatrixView<float> outputs = Forward(parameters, inputs, batch.rows);
  if (correct != nullptr) *correct = CountCorrect(batch, outputs);
  const float loss = Loss(batch, outputs);
  Backward(parameters, inputs, batch.rows, gradient);
  return loss;
}

Evaluation DenseModel::Evaluate(const float* parameters, const Batch& batch) {
  const gpu::MatrixView<float> outputs = Forward(parameters, InputsOf(batch), batch.rows);
  Evaluation evaluation;
  evaluation.rows = batch.rows;
  evaluation.classifies = kind_ != ModelKind::kLinear;
  evaluation.correct = CountCorrect(batch, outputs);
  evaluation.loss_sum = static_cast<double>(Loss(batch, outputs)) * static_cast<double>(batch.rows);
  return evaluation;
}

DenseModel::Inputs DenseModel::InputsOf(const Batch& batch) {
  DT_CHECK(batch.rows <= max_rows_ && batch.columns == layers_[0].inputs, batch.rows, max_rows_,
           batch.columns, layers_[0].inputs);
  Inputs inputs;
  if (batch.inputs != nullptr || batch.rows == 0) {
    inputs.floats = {batch.inputs, batch.rows, batch.columns};
  } else if (gpu::BytesPay(batch.rows, layers_[0].outputs)) {
    inputs.as_bytes = true;
    inputs.bytes = batch.bytes;
  } else {
    if (inputs_.empty()) inputs_.resize(static_cast<size_t>(max_rows_ * batch.columns));
    const gpu::MatrixView<float> floats(inputs_.data(), batch.rows, batch.columns);
    gpu::GatherBytes(stream_, batch.bytes, floats);
    inputs.floats = floats;
  }
  return inputs;
}

gpu::MatrixView<float> DenseModel::Forward(const float* parameters, const Inputs& inputs, int64_t rows) {
  gpu::MatrixView<const float> below = inputs.floats;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const DenseLayer& layer = layers_[i];
    const gpu::MatrixView<const float> weights(parameters + layer.weights, layer.inputs, layer.outputs);
    const gpu::Span<const float> biases(parameters + layer.biases, layer.outputs);
    const gpu::MatrixView<float> outputs = OutputsOf(i, rows);
    if (i == 0 && inputs.as_bytes) {
      gpu::LinearForward(stream_, inputs.bytes, weights, biases, outputs);
    } else {
      gpu::LinearForward(stream_, below, weights, biases, outputs);
    }
    if (i + 1 < layers_.size()) gpu::Activate(stream_, activation_, All(outputs));
    below = outputs;
  }
  return OutputsOf(layers_.size() - 1, rows);
}

// The last layer's outputs hold the loss's gradient with respect to them.
void DenseModel::Backward(const float* parameters, const Inputs& inputs, int64_t rows, float* gradient) {
  gpu::MatrixView<float> slopes = OutputsOf(layers_.size() - 1, rows);
  for (size_t i = layers_.size(); i-- > 0;) {
    const DenseLayer& layer = layers_[i];
    const gpu::MatrixView<float> weights(gradient + layer.weights, layer.inputs, layer.outputs);
    const gpu::Span<float> biases(gradient + layer.biases, layer.outputs);
    if (i == 0) {
      if (inputs.as_bytes) return gpu::LinearGradient(stream_, inputs.bytes, slopes, weights, biases);
      return gpu::LinearGradient(stream_, inputs.floats, slopes, weights, biases);
    }
    const gpu::MatrixView<float> below = OutputsOf(i - 1, rows);
    const gpu::MatrixView<float> slopes_below(slopes_[i - 1].data(), rows, layer.inputs);
    gpu::LinearGradient(stream_, below, slopes, weights, biases);
    gpu::LinearInputGradient(stream_, slopes, {parameters + layer.weights, layer.inputs, layer.outputs},
                             slopes_below);
    gpu::ActivationGradient(stream_, activation_, All(below), All(slopes_below));
    slopes = slopes_below;
  }
}

float DenseModel::Loss(const Batch& batch, gpu::MatrixView<float> outputs) {
  const gpu::Span<float> column(outputs.data, outputs.rows);
  switch (kind_) {
    case ModelKind::kLinear:
      DT_CHECK(batch.targets != nullptr || batch.rows == 0);
      return gpu::MeanSquaredError(stream_, column, {batch.targets, batch.rows}, column);
    case ModelKind::kLogistic:
      DT_CHECK(batch.labels != nullptr || batch.rows == 0);
      return gpu::SigmoidXent(stream_, column, {batch.labels, batch.rows}, column);
    case ModelKind::kSoftmax:
    case ModelKind::kMlp:
      DT_CHECK(batch.labels != nullptr || batch.rows == 0);
      return gpu::SoftmaxXent(stream_, outputs, {batch.labels, batch.rows}, outputs);
  }
  DT_CHECK(false, static_cast<int>(kind_));
  return 0;
}

int64_t DenseModel::CountCorrect(const Batch& batch, gpu::MatrixView<const float> outputs) {
  if (kind_ == ModelKind::kLinear) return 0;
  const gpu::Span<const int32_t> labels(batch.labels, batch.rows);
  if (kind_ == ModelKind::kLogistic) {
    return gpu::CountSignCorrect(stream_, {outputs.data, outputs.rows}, labels);
  }
  return gpu::CountArgmaxCorrect(stream_, outputs, labels);
}

}  // namespace dtrain
