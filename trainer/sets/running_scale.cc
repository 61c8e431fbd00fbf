#include "trainer/sets/running_scale.h"

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace dtrain {

FittedScale FitScaleOfRows(FeatureScale kind, const DataSet& set, int64_t first, int64_t count,
                           const NumberFeatures& numbers) {
  DT_CHECK(kind != FeatureScale::kNone && count >= 1, count);
  const int64_t columns = set.sparse() ? numbers.count : set.inputs();
  std::vector<float> numbers_of_rows;
  const VisitFloats each_row = [&](const std::function<void(const float*)>& visit) {
    VisitRows(set, first, first + count, true, [&](const RowChunk& chunk) {
      const float* row = chunk.inputs;
      if (chunk.sparse != nullptr) {
        numbers_of_rows.resize(static_cast<size_t>(chunk.count * columns));
        WriteNumbers(chunk.sparse->rows(), numbers, {numbers_of_rows.data(), chunk.count, columns});
        row = numbers_of_rows.data();
      }
      for (int64_t i = 0; i < chunk.count; ++i, row += columns) visit(row);
    });
  };
  if (kind == FeatureScale::kUnit) return FitScale(kind, columns, each_row);
  std::vector<double> mean(static_cast<size_t>(columns)), squares(mean.size());
  double rows = 0;
  each_row([&](const float* row) {
    ++rows;
    for (size_t i = 0; i < mean.size(); ++i) {
      const double value = row[i], before = value - mean[i];
      mean[i] += before / rows;
      squares[i] += before * (value - mean[i]);
    }
  });
  // The mean of equal values is exactly their value, and their squares are 0.
  FittedScale scale{std::move(mean), std::move(squares)};
  for (double& factor : scale.factor) factor = factor > 0 ? 1 / std::sqrt(factor / rows) : 0;
  return scale;
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
