#include "trainer/rows/row_reader.h"

#include <algorithm>
#include <numeric>

namespace dtrain {

void RowBlock::Clear() {
  rows = 0;
  floats.clear();
  bytes.clear();
  sparse.Clear();
  labels.clear();
  targets.clear();
  weights.clear();
  ids.clear();
  kept.clear();
}

void RowBlock::DropUnfinished() {
  const auto values = static_cast<size_t>(rows * inputs);
  if (floats.size() > values) floats.resize(values);
  if (bytes.size() > values) bytes.resize(values);
  kept.resize(std::min(kept.size(), static_cast<size_t>(rows) * keeps));
}

Batch RowBlock::AsBatch() {
  Batch batch;
  batch.rows = rows;
  batch.columns = inputs;
  batch.labels = labels.empty() ? nullptr : labels.data();
  batch.targets = targets.empty() ? nullptr : targets.data();
  batch.weights = weights.empty() ? nullptr : weights.data();
  if (sparse.count() > 0) {
    batch.sparse = sparse.rows();
    return batch;
  }
  if (bytes.empty()) {
    batch.inputs = floats.data();
    return batch;
  }
  if (numbers_.size() < static_cast<size_t>(rows)) {
    numbers_.resize(static_cast<size_t>(rows));
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }
  batch.bytes = {{bytes.data(), rows, inputs}, {numbers_.data(), rows}};
  return batch;
}

}  // namespace dtrain
