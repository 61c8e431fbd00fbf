#include "trainer/model/sparse_model.h"

#include <algorithm>

#include "base/check.h"

namespace dtrain {

SparseModel::SparseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce)
    : layout_(layout),
      outputs_(*config.outputs),
      head_(config, reduce, stream_),
      values_(static_cast<size_t>(max_rows * outputs_)) {}

void SparseModel::Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) {
  result_ = StepResult();
  head_.Compute(LabelsOf(batch), Compute(parameters, batch),
                {&result_.loss, count_correct ? &result_.correct : nullptr}, true);
  std::fill_n(gradient, layout_.size + batch.columns * width(), 0.0f);
  if (batch.rows > 0) Backward(parameters, batch, values_.data(), gradient);
}

Evaluation SparseModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  float loss = 0;
  int64_t correct = 0;
  double correct_weight = 0;
  head_.Compute(LabelsOf(batch), Compute(parameters, batch),
                {&loss, &correct, outputs, batch.weights != nullptr ? &correct_weight : nullptr}, false);
  return EvaluationOf(LabelsOf(batch), head_.classifies(), loss, correct, correct_weight);
}

gpu::MatrixView<float> SparseModel::Compute(const float* parameters, const Batch& batch) {
  DT_CHECK(batch.rows * outputs_ <= static_cast<int64_t>(values_.size()), batch.rows);
  const SparseRows& rows = batch.sparse;
  DT_CHECK(batch.rows == 0 || rows.places != nullptr || rows.offsets[batch.rows] == 0, batch.rows);
  if (batch.rows > 0) Forward(parameters, batch, values_.data());
  return {values_.data(), batch.rows, outputs_};
}

// Each product is rounded once, and they are summed in the order of the features.
void SparseLinear::Forward(const float* parameters, const Batch& batch, float* output) {
  const SparseRows& rows = batch.sparse;
  const int64_t width = this->width();
  const float* const bias = parameters + rows.bias * width;
  if (width == 1) {  // the sum stays in a register
    for (int64_t row = 0; row < batch.rows; ++row) {
      float sum = *bias;
      for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
        sum += ValueOf(rows, i) * parameters[rows.places[i]];
      }
      output[row] = sum;
    }
    return;
  }
  for (int64_t row = 0; row < batch.rows; ++row, output += width) {
    std::copy_n(bias, width, output);
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      const float* const weights = parameters + rows.places[i] * width;
      for (int64_t column = 0; column < width; ++column) output[column] += value * weights[column];
    }
  }
}

// The gradient of a weight is summed in the order of the rows that have its feature.
void SparseLinear::Backward(const float*, const Batch& batch, const float* slopes, float* gradient) {
  const SparseRows& rows = batch.sparse;
  const int64_t width = this->width();
  float* const bias = gradient + rows.bias * width;
  for (int64_t row = 0; row < batch.rows; ++row, slopes += width) {
    for (int64_t column = 0; column < width; ++column) bias[column] += slopes[column];
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      float* const weights = gradient + rows.places[i] * width;
      for (int64_t column = 0; column < width; ++column) weights[column] += value * slopes[column];
    }
  }
}

}  // namespace dtrain
