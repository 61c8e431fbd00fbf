#include "trainer/model/dense_model.h"

#include <cstring>
#include <numeric>

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
    : head_(HeadOf(config)),
      reduce_(reduce),
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
  DT_CHECK((classifies() ? batch.labels != nullptr : batch.targets != nullptr) || batch.rows == 0);
  const gpu::MatrixView<float> outputs = Forward(parameters, batch);
  if (results.outputs != nullptr) CopyOut(outputs, results.outputs);
  if (results.correct != nullptr) CountCorrect(batch, outputs, results.correct);
  if (results.correct_weight != nullptr) *results.correct_weight = CorrectWeight(batch, outputs);
  batch.weights == nullptr ? Loss(batch, outputs, results.loss) : WeightedLoss(batch, outputs, results.loss);
  if (gradient == nullptr) return;
  // Scaling the few values that all others follow from costs less than scaling the gradient.
  if (reduce_ == Reduce::kSum) gpu::Scale(stream_, static_cast<float>(batch.rows), All(outputs));
  Backward(parameters, batch, gradient, on_layer);
}

// Replaces the outputs by the gradient of the mean loss with respect to them.
void DenseNet::Loss(const NetBatch& batch, gpu::MatrixView<float> outputs, float* loss) {
  const gpu::Span<float> column(outputs.data, outputs.rows);
  const gpu::Span<const int32_t> labels(batch.labels, batch.rows);
  switch (head_) {
    case ModelHead::kLinear:
      return gpu::MeanSquaredError(stream_, column, {batch.targets, batch.rows}, column, loss);
    case ModelHead::kLogistic:
      return gpu::SigmoidXent(stream_, column, labels, column, loss);
    case ModelHead::kSoftmax:
      return gpu::SoftmaxXent(stream_, outputs, labels, outputs, loss);
  }
}

namespace {

// Row `row` of a batch, for the loss.
NetBatch OneRow(const NetBatch& batch, int64_t row) {
  NetBatch one;
  one.rows = 1;
  if (batch.labels != nullptr) one.labels = batch.labels + row;
  if (batch.targets != nullptr) one.targets = batch.targets + row;
  return one;
}

}  // namespace

// Row by row, with the kernels of the mean over one row: they know no weights.
void DenseNet::WeightedLoss(const NetBatch& batch, gpu::MatrixView<float> outputs, float* loss) {
  DT_CHECK(stream_.backend() != gpu::Backend::kCuda);
  double sum = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const gpu::MatrixView<float> own(outputs.row(row), 1, outputs.cols);
    float own_loss = 0;
    Loss(OneRow(batch, row), own, &own_loss);
    const float weight = batch.weights[row];
    gpu::Scale(stream_, weight / static_cast<float>(batch.rows), All(own));
    sum += static_cast<double>(weight) * static_cast<double>(own_loss);
  }
  *loss = batch.rows == 0 ? 0 : static_cast<float>(sum / static_cast<double>(batch.rows));
}

double DenseNet::CorrectWeight(const NetBatch& batch, gpu::MatrixView<float> outputs) {
  double sum = 0;
  for (int64_t row = 0; classifies() && row < batch.rows; ++row) {
    int64_t correct = 0;
    CountCorrect(OneRow(batch, row), {outputs.row(row), 1, outputs.cols}, &correct);
    sum += static_cast<double>(correct) * static_cast<double>(batch.weights[row]);
  }
  return sum;
}

void DenseNet::CopyOut(gpu::MatrixView<const float> from, float* to) {
  const size_t bytes = static_cast<size_t>(from.size()) * sizeof(float);
  if (stream_.backend() == gpu::Backend::kCuda) {
    stream_.queue().Copy(to, from.data, static_cast<int64_t>(bytes));
  } else if (bytes > 0) {
    std::memcpy(to, from.data, bytes);
  }
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

// On entry the last layer's outputs hold the gradient of the loss for them.
void DenseNet::Backward(const float* parameters, const NetBatch& batch, float* gradient,
                        const std::function<void(size_t)>& on_layer) {
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
    if (i == 0) return;
    const gpu::MatrixView<float> slopes_below(slopes_[i - 1], batch.rows, layer.inputs);
    gpu::LinearInputGradient(stream_, slopes, {parameters + layer.weights, layer.inputs, layer.outputs},
                             slopes_below);
    gpu::ActivationGradient(stream_, activation_, All(OutputsOf(i - 1, batch.rows)), All(slopes_below));
    slopes = slopes_below;
  }
}

void DenseNet::CountCorrect(const NetBatch& batch, gpu::MatrixView<const float> outputs, int64_t* correct) {
  const gpu::Span<const int32_t> labels(batch.labels, batch.rows);
  if (!classifies()) return;
  if (head_ == ModelHead::kLogistic) {
    return gpu::CountSignCorrect(stream_, {outputs.data, outputs.rows}, labels, correct);
  }
  gpu::CountArgmaxCorrect(stream_, outputs, labels, correct);
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
  net_.Compute(parameters, InputsOf(batch), {&result_.loss, count_correct ? &result_.correct : nullptr},
               gradient);
}

Evaluation DenseModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  Evaluation evaluation;
  float loss = 0;
  const bool weighted = batch.weights != nullptr;
  double* const correct_weight = weighted ? &evaluation.correct_weight : nullptr;
  net_.Compute(parameters, InputsOf(batch), {&loss, &evaluation.correct, outputs, correct_weight});
  evaluation.rows = batch.rows;
  evaluation.weight = static_cast<double>(batch.rows);
  if (!weighted) {
    evaluation.correct_weight = static_cast<double>(evaluation.correct);
  } else {
    evaluation.weight = std::accumulate(batch.weights, batch.weights + batch.rows, 0.0);
  }
  evaluation.classifies = net_.classifies();
  evaluation.loss_sum = static_cast<double>(loss) * static_cast<double>(batch.rows);
  return evaluation;
}

// Returns the batch's rows for the first layer: bytes if that is faster, else floats.
NetBatch DenseModel::InputsOf(const Batch& batch) {
  const DenseLayer& first = net_.layers().front();
  DT_CHECK(batch.rows <= max_rows_ && batch.columns == first.inputs, batch.rows, max_rows_, batch.columns,
           first.inputs);
  NetBatch inputs;
  inputs.rows = batch.rows;
  inputs.labels = batch.labels;
  inputs.targets = batch.targets;
  inputs.weights = batch.weights;
  if (batch.inputs != nullptr || batch.rows == 0) {
    inputs.floats = {batch.inputs, batch.rows, batch.columns};
  } else if (gpu::BytesAreFaster(stream_, batch.rows, first.outputs)) {
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
