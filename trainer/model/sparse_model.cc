#include "trainer/model/sparse_model.h"

#include <algorithm>

#include "base/check.h"

namespace dtrain {
namespace {

float ValueOf(const SparseRows& rows, int64_t feature) {
  return rows.values == nullptr ? 1.0f : rows.values[feature];
}

}  // namespace

SparseModel::SparseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce)
    : layout_(layout),
      width_(layout.table->width()),
      head_(config, reduce, stream_),
      outputs_(static_cast<size_t>(max_rows * width_)) {}

void SparseModel::Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) {
  result_ = StepResult();
  head_.Compute(LabelsOf(batch), Forward(parameters, batch),
                {&result_.loss, count_correct ? &result_.correct : nullptr}, true);
  Backward(batch, gradient);
}

Evaluation SparseModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  float loss = 0;
  int64_t correct = 0;
  double correct_weight = 0;
  head_.Compute(LabelsOf(batch), Forward(parameters, batch),
                {&loss, &correct, outputs, batch.weights != nullptr ? &correct_weight : nullptr}, false);
  return EvaluationOf(LabelsOf(batch), head_.classifies(), loss, correct, correct_weight);
}

// An output is the bias plus the products of the features in their order, each rounded once.
gpu::MatrixView<float> SparseModel::Forward(const float* parameters, const Batch& batch) {
  const SparseRows& rows = batch.sparse;
  DT_CHECK(batch.rows * width_ <= static_cast<int64_t>(outputs_.size()), batch.rows);
  DT_CHECK(rows.places != nullptr || batch.rows == 0);
  const float* const bias = parameters + rows.bias * width_;
  float* output = outputs_.data();
  for (int64_t row = 0; row < batch.rows; ++row, output += width_) {
    std::copy_n(bias, width_, output);
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      const float* const weights = parameters + rows.places[i] * width_;
      for (int64_t column = 0; column < width_; ++column) output[column] += value * weights[column];
    }
  }
  return {outputs_.data(), batch.rows, width_};
}

// The gradient of a weight is summed in the order of the rows that have its feature.
void SparseModel::Backward(const Batch& batch, float* gradient) const {
  const SparseRows& rows = batch.sparse;
  std::fill_n(gradient, batch.columns * width_, 0.0f);
  float* const bias = gradient + rows.bias * width_;
  const float* slopes = outputs_.data();
  for (int64_t row = 0; row < batch.rows; ++row, slopes += width_) {
    for (int64_t column = 0; column < width_; ++column) bias[column] += slopes[column];
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      float* const weights = gradient + rows.places[i] * width_;
      for (int64_t column = 0; column < width_; ++column) weights[column] += value * slopes[column];
    }
  }
}

}  // namespace dtrain
