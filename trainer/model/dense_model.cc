#include "trainer/model/dense_model.h"

#include "base/check.h"

namespace dtrain {

std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Layout& layout, int64_t max_rows) {
  return std::make_unique<DenseModel>(config, layout, max_rows);
}

DenseModel::DenseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows)
    : layout_(layout),
      max_rows_(max_rows),
      values_(static_cast<size_t>(DenseNet::FloatsNeeded(config, max_rows))),
      net_(config, layout, max_rows, stream_, values_.data()) {}

void DenseModel::Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) {
  result_ = StepResult();
  net_.Gradient(parameters, InputsOf(batch), gradient,
                {&result_.loss, count_correct ? &result_.correct : nullptr});
}

Evaluation DenseModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  Evaluation evaluation;
  float loss = 0;
  net_.Evaluate(parameters, InputsOf(batch), {&loss, &evaluation.correct}, outputs);
  evaluation.rows = batch.rows;
  evaluation.classifies = net_.classifies();
  evaluation.loss_sum = static_cast<double>(loss) * static_cast<double>(batch.rows);
  return evaluation;
}

// The batch's rows as the first layer reads them: bytes where that is faster, else floats.
NetBatch DenseModel::InputsOf(const Batch& batch) {
  const DenseLayer& first = net_.layers().front();
  DT_CHECK(batch.rows <= max_rows_ && batch.columns == first.inputs, batch.rows, max_rows_, batch.columns,
           first.inputs);
  NetBatch inputs;
  inputs.rows = batch.rows;
  inputs.labels = batch.labels;
  inputs.targets = batch.targets;
  if (batch.inputs != nullptr || batch.rows == 0) {
    inputs.floats = {batch.inputs, batch.rows, batch.columns};
  } else if (gpu::BytesPay(stream_, batch.rows, first.outputs)) {
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
