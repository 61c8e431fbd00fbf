#include "trainer/sets/running_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"

namespace dtrain {
namespace {

constexpr int64_t kRowsAtOnce = 1024;

// A scale of the rows so far.
class RunningScale {
 public:
  RunningScale(FeatureScale kind, int64_t inputs)
      : unit_(kind == FeatureScale::kUnit),
        least_(static_cast<size_t>(inputs), std::numeric_limits<double>::infinity()),
        most_(least_.size(), -std::numeric_limits<double>::infinity()),
        mean_(least_.size()),
        squares_(least_.size()) {}

  void Add(const float* row) {
    ++rows_;
    for (size_t i = 0; i < mean_.size(); ++i) {
      const double value = row[i], before = value - mean_[i];
      least_[i] = std::min(least_[i], value);
      most_[i] = std::max(most_[i], value);
      mean_[i] += before / static_cast<double>(rows_);
      squares_[i] += before * (value - mean_[i]);
    }
  }
  FittedScale Scale() const {
    FittedScale scale{unit_ ? least_ : mean_, std::vector<double>(mean_.size())};
    for (size_t i = 0; i < mean_.size(); ++i) {
      const double width = unit_ ? most_[i] - least_[i] : std::sqrt(squares_[i] / static_cast<double>(rows_));
      scale.factor[i] = most_[i] > least_[i] ? 1 / width : 0;
    }
    return scale;
  }

 private:
  const bool unit_;
  int64_t rows_ = 0;
  std::vector<double> least_, most_, mean_, squares_;
};

}  // namespace

FittedScale FitScaleOfRows(FeatureScale kind, const DataSet& set, int64_t first, int64_t count,
                           const NumberFeatures& numbers) {
  DT_CHECK(kind != FeatureScale::kNone && count >= 1, count);
  const int64_t columns = set.sparse() ? numbers.count : set.inputs();
  RunningScale scale(kind, columns);
  std::vector<int64_t> rows(static_cast<size_t>(kRowsAtOnce));
  std::vector<float> inputs(rows.size() * static_cast<size_t>(columns)), targets(rows.size());
  std::vector<int32_t> labels(rows.size());
  SparseBuffer features;
  for (const int64_t end = first + count; first < end; first += kRowsAtOnce) {
    const int64_t part = std::min(kRowsAtOnce, end - first);
    std::iota(rows.begin(), rows.begin() + part, first);
    if (set.sparse()) {
      set.GatherSparse(rows.data(), part, &features);
      WriteNumbers(features.rows(), numbers, {inputs.data(), part, columns});
    } else {
      set.Gather(rows.data(), part, inputs.data(), labels.data(), targets.data());
    }
    for (int64_t row = 0; row < part; ++row) scale.Add(inputs.data() + row * columns);
  }
  return scale.Scale();
}

FittedScale WithoutFlags(FittedScale scale, const std::vector<InputColumn>& columns) {
  size_t feature = 0;
  for (const InputColumn& column : columns) {
    const size_t end = feature + static_cast<size_t>(column.features());
    if (!column.is_category) ++feature;
    for (; feature < end; ++feature) {
      scale.shift[feature] = 0;
      scale.factor[feature] = 1;
    }
  }
  return scale;
}

}  // namespace dtrain
