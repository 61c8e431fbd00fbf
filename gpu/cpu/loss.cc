// Losses and counts over the rows of a batch. The shapes are small, so these are plain loops.
#include <algorithm>
#include <cmath>

#include "gpu/cpu/ops.h"

namespace dtrain::gpu::cpu {
namespace {

// Writes the gradient of one row, not yet divided by the number of rows, and returns the row's loss.
double SoftmaxXentRow(const float* logits, int64_t classes, int32_t label, float scale, float* dlogits) {
  const float largest = *std::max_element(logits, logits + classes);
  const float at_label = logits[label] - largest;  // read before dlogits, which may alias logits, is written
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

void MeanSquaredError(Span<const float> y, Span<const float> t, Span<float> dy, float* loss) {
  const float scale = 2.0f / static_cast<float>(y.size);
  double sum = 0;
  for (int64_t i = 0; i < y.size; ++i) {
    const float difference = y[i] - t[i];
    sum += static_cast<double>(difference) * difference;
    dy[i] = scale * difference;
  }
  *loss = MeanOf(sum, y.size);
}

void SigmoidXent(Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits, float* loss) {
  const float scale = 1.0f / static_cast<float>(logits.size);
  double sum = 0;
  for (int64_t i = 0; i < logits.size; ++i) {
    const float z = logits[i];
    const float small = std::exp(-std::abs(z));
    // If the sign agrees with the label, the loss is log1p(small); otherwise |z| is added. No large terms
    // cancel.
    const bool wrong_side = (z > 0) != (labels[i] == 1);
    sum += std::log1p(small) + (wrong_side ? std::abs(z) : 0.0f);
    // The magnitude of sigmoid(z) - label is the probability of the other class.
    const float towards = small / (1 + small);
    const float miss = wrong_side ? 1 / (1 + small) : towards;
    dlogits[i] = scale * (labels[i] == 1 ? -miss : miss);
  }
  *loss = MeanOf(sum, logits.size);
}

void SoftmaxXent(MatrixView<const float> logits, Span<const int32_t> labels, MatrixView<float> dlogits,
                 float* loss) {
  const float scale = 1.0f / static_cast<float>(logits.rows);
  double sum = 0;
  for (int64_t i = 0; i < logits.rows; ++i) {
    sum += SoftmaxXentRow(logits.row(i), logits.cols, labels[i], scale, dlogits.row(i));
  }
  *loss = MeanOf(sum, logits.rows);
}

void CountArgmaxCorrect(MatrixView<const float> scores, Span<const int32_t> labels, int64_t* correct) {
  int64_t count = 0;
  for (int64_t i = 0; i < scores.rows; ++i) {
    const float* row = scores.row(i);
    count += std::max_element(row, row + scores.cols) - row == labels[i];
  }
  *correct = count;
}

void CountSignCorrect(Span<const float> logits, Span<const int32_t> labels, int64_t* correct) {
  int64_t count = 0;
  for (int64_t i = 0; i < logits.size; ++i) count += (logits[i] > 0) == (labels[i] == 1);
  *correct = count;
}

}  // namespace dtrain::gpu::cpu
