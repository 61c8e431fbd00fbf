// Batch: rows of features with their labels, as a model reads them.
#pragma once

#include <cstdint>

#include "gpu/view.h"

namespace dtrain {

// Points into the source that filled it, until that source's next call. Features are floats, or bytes where
// the data set keeps bytes.
struct Batch {
  const float* inputs = nullptr;  // [rows, columns] row-major; null: see `bytes`
  gpu::ByteRows bytes;            // [rows, columns]
  int64_t rows = 0;
  int64_t columns = 0;
  // Where the data set keeps floats and lies in memory: all of it, and which rows these are; else empty.
  gpu::MatrixView<const float> table;
  gpu::Span<const int64_t> table_rows;
  const int32_t* labels = nullptr;  // [rows] classes, each in [0, outputs); null for linear
  const float* targets = nullptr;   // [rows] real values; null for classes
  // Which one this is, to recognise it: the number of one that `source` filled. Null: it cannot be told.
  const void* source = nullptr;
  uint64_t number = 0;
};

}  // namespace dtrain
