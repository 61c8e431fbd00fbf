#include "trainer/data/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace dtrain {
namespace {

struct Range {
  std::vector<double> least, greatest;
};

Range RangeOf(gpu::MatrixView<const float> rows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const size_t cols = static_cast<size_t>(rows.cols);
  Range range{std::vector<double>(cols, kInfinity), std::vector<double>(cols, -kInfinity)};
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      const double value = rows.row(r)[c];
      range.least[c] = std::min(range.least[c], value);
      range.greatest[c] = std::max(range.greatest[c], value);
    }
  }
  return range;
}

std::vector<double> MeanOf(gpu::MatrixView<const float> rows) {
  std::vector<double> mean(static_cast<size_t>(rows.cols));
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (size_t c = 0; c < mean.size(); ++c) mean[c] += rows.row(r)[c];
  }
  for (double& sum : mean) sum /= static_cast<double>(rows.rows);
  return mean;
}

// About `mean`, in a second pass: the difference of two large sums would lose all digits.
std::vector<double> DeviationOf(gpu::MatrixView<const float> rows, const std::vector<double>& mean) {
  std::vector<double> deviation(mean.size());
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (size_t c = 0; c < mean.size(); ++c) {
      const double distance = rows.row(r)[c] - mean[c];
      deviation[c] += distance * distance;
    }
  }
  for (double& sum : deviation) sum = std::sqrt(sum / static_cast<double>(rows.rows));
  return deviation;
}

}  // namespace

FittedScale FitScale(FeatureScale kind, gpu::MatrixView<const float> rows) {
  DT_CHECK(kind != FeatureScale::kNone);
  const Range range = RangeOf(rows);
  const bool unit = kind == FeatureScale::kUnit;
  FittedScale scale;
  scale.shift = unit ? range.least : MeanOf(rows);
  if (!unit) scale.factor = DeviationOf(rows, scale.shift);
  scale.factor.resize(scale.shift.size());
  for (size_t c = 0; c < scale.factor.size(); ++c) {
    const double width = unit ? range.greatest[c] - range.least[c] : scale.factor[c];
    // By the range: the rounded mean of equal values may leave a deviation beside 0.
    scale.factor[c] = range.greatest[c] > range.least[c] ? 1 / width : 0;
  }
  return scale;
}

void ApplyScale(const FittedScale& scale, gpu::MatrixView<float> rows) {
  DT_CHECK(scale.shift.size() == static_cast<size_t>(rows.cols), scale.shift.size(), rows.cols);
  for (int64_t r = 0; r < rows.rows; ++r) {
    float* const row = rows.row(r);
    for (size_t c = 0; c < scale.shift.size(); ++c) {
      row[c] = static_cast<float>((row[c] - scale.shift[c]) * scale.factor[c]);
    }
  }
}

}  // namespace dtrain
