// Batch: rows of features with their labels, as a model reads them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/view.h"
#include "trainer/config/choices.h"

namespace dtrain {

// SparseRows: the features of rows that are 0 but for a few. The features of row i are [offsets[i],
// offsets[i + 1]), in the order of the file; one that comes twice counts twice.
struct SparseRows {
  const int64_t* offsets = nullptr;  // [rows + 1], from 0; null: rows are not sparse
  const uint64_t* ids = nullptr;     // features, each in [0, columns)
  const float* values = nullptr;     // of these; null: all are 1
  // Of a batch that has the rows of a table which it touches (trainer/table/keyed_batch.h): of each
  // feature, the number of its row among these, and that of the bias. `columns` is then their number.
  const uint32_t* places = nullptr;
  uint32_t bias = 0;
  // The column of each feature, where the model asks for it (BatchForm).
  const uint32_t* columns = nullptr;
};

// FittedScale: the fitted data.scale, which brings features to similar sizes. It is fitted on training rows
// alone and applied to every set, so that equal values mean the same everywhere; other rows may leave the
// fitted range. The arithmetic is in double and in row order, so that fitting the same rows gives the same
// bits. A feature becomes (value - shift) * factor. A feature that is constant in the fitted rows has factor
// 0 and becomes 0 in every set.
struct FittedScale {
  std::vector<double> shift;
  std::vector<double> factor;
  bool empty() const { return shift.empty(); }  // features are not scaled
  bool operator==(const FittedScale& other) const { return shift == other.shift && factor == other.factor; }
  bool operator!=(const FittedScale& other) const { return !(*this == other); }
};

// Scales `rows` in place; they must have as many columns as were fitted.
void ApplyScale(const FittedScale& scale, gpu::MatrixView<float> rows);

// NumberFeatures: the features of sparse rows that stand for numbers, and are no rows of a table.
struct NumberFeatures {
  uint64_t begin = 0;  // the first of them; they are behind all others
  int64_t count = 0;
};
// Returns those of a model; model.inputs must be set.
NumberFeatures NumbersOf(const ModelConfig& model);

// BatchForm: what a batch of a table has beside the rows that it touches.
struct BatchForm {
  int64_t flat = 0;  // values of the model's flat vector, in front of the rows' weights
  NumberFeatures numbers;
  FittedScale scale;  // of these
  // A feature is of the column that stands above so many of its bits; 0: the model does not ask for columns.
  int column_bits = 0;
};

// Points into the source that filled it; valid until that source's next call. Features are floats, or bytes
// if the data set keeps bytes.
struct Batch {
  const float* inputs = nullptr;  // [rows, columns] row-major; null: see `bytes` and `sparse`
  gpu::ByteRows bytes;            // [rows, columns]
  int64_t rows = 0;
  int64_t columns = 0;
  // If the data set keeps floats in memory: all its rows, and which of them these are; else empty.
  gpu::MatrixView<const float> table;
  gpu::Span<const int64_t> table_rows;
  const int32_t* labels = nullptr;  // [rows] classes, each in [0, outputs); null for linear
  const float* targets = nullptr;   // [rows] real values; null for classes
  SparseRows sparse;
  const float* numbers = nullptr;  // [rows, BatchForm::numbers.count]; null: there are none
  // [rows] how much each row counts: its loss and its gradient are multiplied by it; null: all count 1.
  const float* weights = nullptr;
  const float* row_offsets = nullptr;  // [rows] what is added to the output of each row; null: nothing
  // With `weights`: what the mean over the rows divides by: the sum of data.weight. A class's weight is in
  // `weights` alone.
  double weight = 0;
  // The identity of the batch: batch `number` of `source`. Null: it has none.
  const void* source = nullptr;
  uint64_t number = 0;
};

// What rows may have beside features and label, a number each (data.weight, data.offset): the members of a
// struct that has them.
template <typename Rows>
inline constexpr std::array kNumbersOf{&Rows::weights, &Rows::row_offsets};

}  // namespace dtrain
