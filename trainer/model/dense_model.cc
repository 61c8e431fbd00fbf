#include "trainer/model/dense_model.h"

#include "base/check.h"

namespace dtrain {
namespace {

constexpr char kWeights[] = "weights/W1";
constexpr char kBiases[] = "biases/b1";

DenseLayer FindLayer(const Layout& layout) {
  const Variable& weights = layout.Find(kWeights);
  return DenseLayer{weights.rows, weights.cols, weights.offset, layout.Find(kBiases).offset};
}

gpu::MatrixView<const float> InputsOf(const Batch& batch) {
  return {batch.inputs, batch.rows, batch.columns};
}

}  // namespace

std::vector<Variable> ModelVariables(const ModelConfig& config) {
  DT_CHECK(config.inputs.has_value() && config.outputs.has_value());
  Variable weights;
  weights.name = kWeights;
  weights.rows = *config.inputs;
  weights.cols = *config.outputs;
  weights.fan_in = *config.inputs;
  weights.fan_out = *config.outputs;
  Variable biases = weights;
  biases.name = kBiases;
  biases.rows = *config.outputs;
  biases.cols = 1;
  biases.bias = true;
  return {weights, biases};
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
      layout_(layout),
      max_rows_(max_rows),
      layer_(FindLayer(layout)),
      stream_(gpu::Backend::kCpu),
      outputs_(max_rows * layer_.outputs) {
  DT_CHECK(kind_ == ModelKind::kSoftmax || layer_.outputs == 1, layer_.outputs);
}

float DenseModel::Gradient(const float* parameters, const Batch& batch, float* gradient, int64_t* correct) {
  const gpu::MatrixView<float> outputs = Forward(parameters, batch);
  if (correct != nullptr) *correct = CountCorrect(batch, outputs);
  const float loss = Loss(batch, outputs);
  gpu::LinearGradient(stream_, InputsOf(batch), outputs,
                      {gradient + layer_.weights, layer_.inputs, layer_.outputs},
                      {gradient + layer_.biases, layer_.outputs});
  return loss;
}

Evaluation DenseModel::Evaluate(const float* parameters, const Batch& batch) {
  const gpu::MatrixView<float> outputs = Forward(parameters, batch);
  Evaluation evaluation;
  evaluation.rows = batch.rows;
  evaluation.classifies = kind_ != ModelKind::kLinear;
  evaluation.correct = CountCorrect(batch, outputs);
  evaluation.loss_sum = static_cast<double>(Loss(batch, outputs)) * static_cast<double>(batch.rows);
  return evaluation;
}

gpu::MatrixView<float> DenseModel::Forward(const float* parameters, const Batch& batch) {
  DT_CHECK(batch.rows <= max_rows_ && batch.columns == layer_.inputs, batch.rows, max_rows_, batch.columns,
           layer_.inputs);
  const gpu::MatrixView<float> outputs(outputs_.data(), batch.rows, layer_.outputs);
  gpu::LinearForward(stream_, InputsOf(batch), {parameters + layer_.weights, layer_.inputs, layer_.outputs},
                     {parameters + layer_.biases, layer_.outputs}, outputs);
  return outputs;
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
