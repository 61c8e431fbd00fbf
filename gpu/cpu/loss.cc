// Losses and counts over the rows of a batch: small shapes, so plain loops.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain::gpu {
namespace {

// Writes the gradient of one row, not yet divided by the number of rows, and returns the row's loss.
double SoftmaxXentRow(const float* logits, int64_t classes, int32_t label, float scale, float* dlogits) {
  const float largest = *std::max_element(logits, logits + classes);
  const float at_label = logits[label] - largest;  // read before dlogits, which may be logits, is written
  float sum = 0;
  for (int64_t j = 0; j < classes; ++j) {
    dlogits[j] = std::exp(logits[j] - largest);
    sum += dlogits[j];
  }
  const float factor = scale / sum;
  for (int64_t j = 0; j < classes; ++j) dlogits[j] *= factor;
  dlogits[label] -= scale;
  return std::log(sum) - at_label;
}

float MeanOf(double sum, int64_t rows) {
  return rows == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(rows));
}

}  // namespace

float MeanSquaredError(Stream&, Span<const float> y, Span<const float> t, Span<float> dy) {
  DT_CHECK(y.size == t.size && y.size == dy.size, y.size, t.size, dy.size);
  const float scale = 2.0f / static_cast<float>(y.size);
  double sum = 0;
  for (int64_t i = 0; i < y.size; ++i) {
    const float difference = y[i] - t[i];
    sum += static_cast<double>(difference) * difference;
    dy[i] = scale * difference;
  }
  return MeanOf(sum, y.size);
}

float SigmoidXent(Stream&, Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits) {
  DT_CHECK(logits.size == labels.size && logits.size == dlogits.size, logits.size, labels.size, dlogits.size);
  const float scale = 1.0f / static_cast<float>(logits.size);
  double loss = 0;
  for (int64_t i = 0; i < logits.size; ++i) {
    const float z = logits[i];
    const float small = std::exp(-std::abs(z));
    // Towards the label the loss is log1p(small) alone; away from it |z| is added. No large terms cancel.
    const bool wrong_side = (z > 0) != (labels[i] == 1);
    loss += std::log1p(small) + (wrong_side ? std::abs(z) : 0.0f);
    // sigmoid(z) - label has the magnitude of the probability of the other class.
    const float towards = small / (1 + small);
    const float miss = wrong_side ? 1 / (1 + small) : towards;
    dlogits[i] = scale * (labels[i] == 1 ? -miss : miss);
  }
  return MeanOf(loss, logits.size);
}

float SoftmaxXent(Stream&, MatrixView<const float> logits, Span<const int32_t> labels,
                  MatrixView<float> dlogits) {
  DT_CHECK(logits.rows == labels.size && logits.rows == dlogits.rows && logits.cols == dlogits.cols,
           logits.rows, labels.size, dlogits.rows, logits.cols, dlogits.cols);
  const float scale = 1.0f / static_cast<float>(logits.rows);
  double loss = 0;
  for (int64_t i = 0; i < logits.rows; ++i) {
    loss += SoftmaxXentRow(logits.row(i), logits.cols, labels[i], scale, dlogits.row(i));
  }
  return MeanOf(loss, logits.rows);
}

int64_t CountArgmaxCorrect(Stream&, MatrixView<const float> scores, Span<const int32_t> labels) {
  DT_CHECK(scores.rows == labels.size, scores.rows, labels.size);
  int64_t correct = 0;
  for (int64_t i = 0; i < scores.rows; ++i) {
    const float* row = scores.row(i);
    correct += std::max_element(row, row + scores.cols) - row == labels[i];
  }
  return correct;
}

int64_t CountSignCorrect(Stream&, Span<const float> logits, Span<const int32_t> labels) {
  DT_CHECK(logits.size == labels.size, logits.size, labels.size);
  int64_t correct = 0;
  for (int64_t i = 0; i < logits.size; ++i) correct += (logits[i] > 0) == (labels[i] == 1);
  return correct;
}

}  // namespace dtrain::gpu
