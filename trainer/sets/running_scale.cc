#include "trainer/sets/running_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"

namespace dtrain {
namespace {

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
  std::vector<float> numbers_of_rows;
  VisitRows(set, first, first + count, true, [&](const RowChunk& chunk) {
    const float* row = chunk.inputs;
    if (chunk.sparse != nullptr) {
      numbers_of_rows.resize(static_cast<size_t>(chunk.count * columns));
      WriteNumbers(chunk.sparse->rows(), numbers, {numbers_of_rows.data(), chunk.count, columns});
      row = numbers_of_rows.data();
    }
    for (int64_t i = 0; i < chunk.count; ++i, row += columns) scale.Add(row);
  });
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
