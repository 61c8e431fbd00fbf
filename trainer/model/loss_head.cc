#include "trainer/model/loss_head.h"

#include <cstring>

#include "base/check.h"
#include "gpu/cuda/queue.h"

namespace dtrain {
namespace {

gpu::Span<float> All(gpu::MatrixView<float> matrix) { return {matrix.data, matrix.size()}; }

}  // namespace

void LossHead::Compute(const LabelledRows& rows, gpu::MatrixView<float> outputs, const NetResults& results,
                       bool slopes) {
  DT_CHECK((classifies() ? rows.labels != nullptr : rows.targets != nullptr) || rows.rows == 0);
  if (rows.row_offsets != nullptr) AddOffsets(rows.row_offsets, outputs);
  if (results.outputs != nullptr) CopyOut(outputs, results.outputs);
  if (results.correct != nullptr) CountCorrect(rows, outputs, results.correct);
  if (results.correct_weight != nullptr) *results.correct_weight = CorrectWeight(rows, outputs);
  rows.weights == nullptr ? Loss(rows, outputs, results.loss) : WeightedLoss(rows, outputs, results.loss);
  // Scaling the few values that all others follow from costs less than scaling the gradient.
  if (slopes && reduce_ == Reduce::kSum) {
    gpu::Scale(stream_, static_cast<float>(rows.divisor()), All(outputs));
  }
}

// Replaces the outputs by the gradient of the mean loss with respect to them.
void LossHead::Loss(const LabelledRows& rows, gpu::MatrixView<float> outputs, float* loss) {
  const gpu::Span<float> column(outputs.data, outputs.rows);
  const gpu::Span<const int32_t> labels(rows.labels, rows.rows);
  switch (head_) {
    case ModelHead::kLinear:
      return gpu::MeanPointLoss(stream_, loss_, column, gpu::Span<const float>(rows.targets, rows.rows),
                                column, loss);
    case ModelHead::kLogistic:
      if (scores_) return gpu::MeanPointLoss(stream_, loss_, column, labels, column, loss);
      return gpu::SigmoidXent(stream_, column, labels, column, loss);
    case ModelHead::kSoftmax:
      return gpu::SoftmaxXent(stream_, outputs, labels, outputs, loss);
  }
}

namespace {

// Row `row` of these, for the loss.
LabelledRows OneRow(const LabelledRows& rows, int64_t row) {
  LabelledRows one;
  one.rows = 1;
  if (rows.labels != nullptr) one.labels = rows.labels + row;
  if (rows.targets != nullptr) one.targets = rows.targets + row;
  return one;
}

}  // namespace

// Row by row, with the kernels of the mean over one row: they know no weights.
void LossHead::WeightedLoss(const LabelledRows& rows, gpu::MatrixView<float> outputs, float* loss) {
  DT_CHECK(stream_.backend() != gpu::Backend::kCuda);
  double sum = 0;
  const double all = rows.weight > 0 ? rows.weight : 1;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const gpu::MatrixView<float> own(outputs.row(row), 1, outputs.cols);
    float own_loss = 0;
    Loss(OneRow(rows, row), own, &own_loss);
    const float weight = rows.weights[row];
    gpu::Scale(stream_, static_cast<float>(static_cast<double>(weight) / all), All(own));
    sum += static_cast<double>(weight) * static_cast<double>(own_loss);
  }
  *loss = static_cast<float>(sum / all);
}

double LossHead::CorrectWeight(const LabelledRows& rows, gpu::MatrixView<float> outputs) {
  double sum = 0;
  for (int64_t row = 0; classifies() && row < rows.rows; ++row) {
    int64_t correct = 0;
    CountCorrect(OneRow(rows, row), {outputs.row(row), 1, outputs.cols}, &correct);
    sum += static_cast<double>(correct) * static_cast<double>(rows.weights[row]);
  }
  return sum;
}

void LossHead::AddOffsets(const float* row_offsets, gpu::MatrixView<float> outputs) {
  DT_CHECK(stream_.backend() != gpu::Backend::kCuda && outputs.cols == 1, outputs.cols);
  for (int64_t row = 0; row < outputs.rows; ++row) outputs.data[row] += row_offsets[row];
}

void LossHead::CopyOut(gpu::MatrixView<const float> from, float* to) {
  const size_t bytes = static_cast<size_t>(from.size()) * sizeof(float);
  if (stream_.backend() == gpu::Backend::kCuda) {
    stream_.queue().Copy(to, from.data, static_cast<int64_t>(bytes));
  } else if (bytes > 0) {
    std::memcpy(to, from.data, bytes);
  }
}

void LossHead::CountCorrect(const LabelledRows& rows, gpu::MatrixView<const float> outputs,
                            int64_t* correct) {
  const gpu::Span<const int32_t> labels(rows.labels, rows.rows);
  if (!classifies()) return;
  if (head_ == ModelHead::kLogistic) {
    return gpu::CountSignCorrect(stream_, {outputs.data, outputs.rows}, labels, correct);
  }
  gpu::CountArgmaxCorrect(stream_, outputs, labels, correct);
}

LabelledRows LabelsOf(const Batch& batch) {
  return {batch.rows, batch.labels, batch.targets, batch.weights, batch.row_offsets, batch.weight};
}

Evaluation EvaluationOf(const LabelledRows& rows, bool classifies, float loss, int64_t correct,
                        double correct_weight) {
  Evaluation evaluation;
  evaluation.rows = rows.rows;
  evaluation.correct = correct;
  evaluation.classifies = classifies;
  evaluation.weight = rows.divisor();
  evaluation.loss_sum = static_cast<double>(loss) * evaluation.weight;
  evaluation.correct_weight = rows.weights != nullptr ? correct_weight : static_cast<double>(correct);
  return evaluation;
}

}  // namespace dtrain
