// Losses and counts over the rows of a batch, as plain loops; exponentials are vectorised (activation.cc).
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "gpu/cpu/ops.h"
#include "gpu/point_loss_rows.h"

namespace dtrain::gpu::cpu {
namespace {

constexpr int64_t kCachedValues = 4096;
constexpr int64_t kLanes = 4;  // values that a loop over classes takes at once, so that it vectorises

float LargestOf(const float* values, int64_t count) {
  float largest[kLanes];
  std::fill_n(largest, kLanes, values[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      largest[k] = values[i + k] > largest[k] ? values[i + k] : largest[k];
    }
  }
  for (; i < count; ++i) largest[0] = std::max(largest[0], values[i]);
  return *std::max_element(largest, largest + kLanes);
}

// In double, because a float would round each of thousands of terms.
double SumOf(const float* values, int64_t count) {
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) sums[k] += static_cast<double>(values[i + k]);
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Writes the gradient of the rows' summed loss times `scale`, and returns that loss. `dlogits` may alias
// `logits`.
double SoftmaxXentRows(MatrixView<const float> logits, const int32_t* labels, float scale, float* dlogits) {
  const int64_t classes = logits.cols;
  double loss = 0;
  for (int64_t i = 0; i < logits.rows; ++i) {
    const float* const row = logits.row(i);
    const float largest = LargestOf(row, classes);
    loss -= static_cast<double>(row[labels[i]] - largest);
    for (int64_t j = 0; j < classes; ++j) dlogits[i * classes + j] = row[j] - largest;
  }
  Exponentiate({dlogits, logits.size()});
  for (int64_t i = 0; i < logits.rows; ++i) {
    float* const slopes = dlogits + i * classes;
    const auto sum = static_cast<float>(SumOf(slopes, classes));
    loss += static_cast<double>(std::log(sum));
    const float factor = scale / sum;
    for (int64_t j = 0; j < classes; ++j) slopes[j] *= factor;
    slopes[labels[i]] -= scale;
  }
  return loss;
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

namespace {

// PointLossBlock: some rows in arrays of their own, since loops over these vectorise: slopes may lie over
// outputs, and a sum in double is made in order.
struct PointLossBlock {
  static constexpr int64_t kRows = 256;
  float z[kRows], t[kRows], slopes[kRows], values[kRows];
};

template <typename Row>
std::enable_if_t<!std::is_base_of_v<LogLinkRow<Row>, Row>> FillRows(Row, float parameter, int64_t count,
                                                                    PointLossBlock* rows) {
  for (int64_t i = 0; i < count; ++i) {
    rows->values[i] = Row::Of(rows->z[i], rows->t[i], parameter, &rows->slopes[i]);
  }
}

// Computes the exponents of all rows together.
template <typename Loss>
std::enable_if_t<std::is_base_of_v<LogLinkRow<Loss>, Loss>> FillRows(Loss, float parameter, int64_t count,
                                                                     PointLossBlock* rows) {
  float first[PointLossBlock::kRows], second[PointLossBlock::kRows], of_target[PointLossBlock::kRows];
  for (int64_t i = 0; i < count; ++i) {
    first[i] = Exponent::Bounded(Loss::First(rows->z[i], parameter));
    second[i] = Exponent::Bounded(Loss::Second(rows->z[i], parameter));
    of_target[i] = rows->t[i] > 0 ? rows->t[i] : 1.0f;
  }
  Exponentiate({first, count});
  if constexpr (Loss::kTwo) Exponentiate({second, count});
  Logarithms({of_target, count});
  for (int64_t i = 0; i < count; ++i) of_target[i] = Loss::OfTarget(of_target[i], parameter);
  if constexpr (Loss::kPower) Exponentiate({of_target, count});
  for (int64_t i = 0; i < count; ++i) {
    const float z = rows->z[i];
    rows->values[i] = Loss::Finish(z, rows->t[i], parameter, {Loss::First(z, parameter), first[i]},
                                   {Loss::Second(z, parameter), second[i]}, of_target[i], &rows->slopes[i]);
  }
}

}  // namespace

template <typename Target>
void MeanPointLoss(const PointLoss& loss, Span<const float> outputs, Span<const Target> targets,
                   Span<float> slopes, float* result) {
  const float scale = 1.0f / static_cast<float>(outputs.size);
  const auto parameter = static_cast<float>(loss.parameter);
  VisitLossRow<Target>(loss.kind, [&](auto row) {
    PointLossBlock rows;
    double sum = 0;
    for (int64_t begin = 0; begin < outputs.size; begin += PointLossBlock::kRows) {
      const int64_t count = std::min(PointLossBlock::kRows, outputs.size - begin);
      std::copy_n(outputs.data + begin, count, rows.z);
      for (int64_t i = 0; i < count; ++i) rows.t[i] = TargetOf(targets[begin + i]);
      FillRows(row, parameter, count, &rows);
      for (int64_t i = 0; i < count; ++i) slopes[begin + i] = scale * rows.slopes[i];
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(rows.values[i]);
    }
    *result = MeanOf(sum, outputs.size);
  });
}
template void MeanPointLoss(const PointLoss&, Span<const float>, Span<const float>, Span<float>, float*);
template void MeanPointLoss(const PointLoss&, Span<const float>, Span<const int32_t>, Span<float>, float*);

void SoftmaxXent(MatrixView<const float> logits, Span<const int32_t> labels, MatrixView<float> dlogits,
                 float* loss) {
  const float scale = 1.0f / static_cast<float>(logits.rows);
  const int64_t rows_at_once = std::max<int64_t>(1, kCachedValues / logits.cols);
  double sum = 0;
  for (int64_t i = 0; i < logits.rows; i += rows_at_once) {
    const int64_t rows = std::min(rows_at_once, logits.rows - i);
    sum += SoftmaxXentRows({logits.row(i), rows, logits.cols}, labels.data + i, scale, dlogits.row(i));
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
