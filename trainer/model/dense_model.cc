#include "trainer/model/dense_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "gpu/cuda/queue.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

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

// Variables come in pairs, weights and biases of each layer in turn.
std::vector<DenseLayer> FindLayers(const ModelConfig& config, const Layout& layout) {
  const std::vector<Variable> variables = ModelVariables(config);
  std::vector<DenseLayer> layers;
  for (size_t i = 0; i < variables.size(); i += 2) {
    const Variable& weights = layout.Find(variables[i].name);
    layers.push_back({weights.rows, weights.cols, weights.offset, layout.Find(variables[i + 1].name).offset});
  }
  return layers;
}

}  // namespace

int64_t DenseNet::FloatsNeeded(const ModelConfig& config, int64_t max_rows) {
  return max_rows * ValuesPerRow(config);
}

DenseNet::DenseNet(const ModelConfig& config, const Layout& layout, int64_t max_rows, gpu::Stream& stream,
                   float* values, Reduce reduce)
    : head_(config, reduce, stream),
      activation_(KernelOf(config.activation)),
      layers_(FindLayers(config, layout)),
      stream_(stream) {
  DT_CHECK(HasOutputPerClass(config) || layers_.back().outputs == 1, layers_.back().outputs);
  const auto take = [&](const DenseLayer& layer) {
    float* const taken = values;
    values += max_rows * layer.outputs;
    return taken;
  };
  for (const DenseLayer& layer : layers_) {
    outputs_.push_back(take(layer));
    if (outputs_.size() < layers_.size()) slopes_.push_back(take(layer));
  }
}

void DenseNet::Compute(const float* parameters, const NetBatch& batch, const NetResults& results,
                       float* gradient, const std::function<void(size_t)>& on_layer) {
  head_.Compute(batch, Forward(parameters, batch), results, gradient != nullptr);
  if (gradient != nullptr) Backward(parameters, batch, gradient, on_layer, nullptr);
}

void DenseNet::GradientFrom(const float* parameters, const NetBatch& batch, const float* slopes,
                            float* gradient, float* input_slopes) {
  std::copy_n(slopes, batch.rows * layers_.back().outputs, outputs_.back());
  Backward(parameters, batch, gradient, {}, input_slopes);
}

gpu::MatrixView<float> DenseNet::Forward(const float* parameters, const NetBatch& batch) {
  gpu::MatrixView<const float> below = batch.floats;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const DenseLayer& layer = layers_[i];
    const gpu::MatrixView<const float> weights(parameters + layer.weights, layer.inputs, layer.outputs);
    const gpu::Span<const float> biases(parameters + layer.biases, layer.outputs);
    const gpu::MatrixView<float> outputs = OutputsOf(i, batch.rows);
    std::optional<gpu::Activation> activation;
    if (i + 1 < layers_.size()) activation = activation_;
    if (i == 0 && batch.as_bytes) {
      gpu::LinearForward(stream_, batch.bytes, weights, biases, outputs, activation);
    } else {
      gpu::LinearForward(stream_, below, weights, biases, outputs, activation);
    }
    below = outputs;
  }
  return OutputsOf(layers_.size() - 1, batch.rows);
}

// On entry the last layer's outputs hold the gradient of the loss for them. `input_slopes`: null: not wanted.
void DenseNet::Backward(const float* parameters, const NetBatch& batch, float* gradient,
                        const std::function<void(size_t)>& on_layer, float* input_slopes) {
  gpu::MatrixView<float> slopes = OutputsOf(layers_.size() - 1, batch.rows);
  for (size_t i = layers_.size(); i-- > 0;) {
    const DenseLayer& layer = layers_[i];
    const gpu::MatrixView<float> weights(gradient + layer.weights, layer.inputs, layer.outputs);
    const gpu::Span<float> biases(gradient + layer.biases, layer.outputs);
    if (i == 0 && batch.as_bytes) {
      gpu::LinearGradient(stream_, batch.bytes, slopes, weights, biases);
    } else if (i == 0) {
      gpu::LinearGradient(stream_, batch.floats, slopes, weights, biases);
    } else {
      gpu::LinearGradient(stream_, OutputsOf(i - 1, batch.rows), slopes, weights, biases);
    }
    if (on_layer) on_layer(i);
    if (i == 0 && input_slopes == nullptr) return;
    const gpu::MatrixView<float> slopes_below(i == 0 ? input_slopes : slopes_[i - 1], batch.rows,
                                              layer.inputs);
    gpu::LinearInputGradient(stream_, slopes, {parameters + layer.weights, layer.inputs, layer.outputs},
                             slopes_below);
    if (i == 0) return;
    gpu::ActivationGradient(stream_, activation_, All(OutputsOf(i - 1, batch.rows)), All(slopes_below));
    slopes = slopes_below;
  }
}

std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Layout& layout, int64_t max_rows,
                                 Reduce reduce) {
  return std::make_unique<DenseModel>(config, layout, max_rows, reduce);
}

DenseModel::DenseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce)
    : layout_(layout),
      max_rows_(max_rows),
      values_(static_cast<size_t>(DenseNet::FloatsNeeded(config, max_rows))),
      net_(config, layout, max_rows, stream_, values_.data(), reduce) {}

void DenseModel::Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) {
  result_ = StepResult();
  const NetResults results{&result_.loss, count_correct ? &result_.correct : nullptr};
  std::function<void(size_t)> on_layer;
  if (on_part_) on_layer = [this](size_t number) { TellOf(net_.layers()[number]); };
  net_.Compute(parameters, InputsOf(batch), results, gradient, on_layer);
}

void DenseModel::TellOf(const DenseLayer& layer) const {
  if (!std::isfinite(result_.loss)) return;
  on_part_({layer.biases, layer.biases + layer.outputs});
  on_part_({layer.weights, layer.weights + layer.inputs * layer.outputs});
}

Evaluation DenseModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  float loss = 0;
  int64_t correct = 0;
  double correct_weight = 0;
  net_.Compute(parameters, InputsOf(batch),
               {&loss, &correct, outputs, batch.weights != nullptr ? &correct_weight : nullptr});
  return EvaluationOf(LabelsOf(batch), net_.classifies(), loss, correct, correct_weight);
}

// Returns the batch's rows for the first layer: bytes if that is faster, else floats.
NetBatch DenseModel::InputsOf(const Batch& batch) {
  const DenseLayer& first = net_.layers().front();
  DT_CHECK(batch.rows <= max_rows_ && batch.columns == first.inputs, batch.rows, max_rows_, batch.columns,
           first.inputs);
  NetBatch inputs;
  static_cast<LabelledRows&>(inputs) = LabelsOf(batch);
  if (batch.inputs != nullptr || batch.rows == 0) {
    inputs.floats = {batch.inputs, batch.rows, batch.columns};
  } else if (gpu::BytesAreFaster(stream_, batch.bytes, first.outputs)) {
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

}  // namespace dtrain
