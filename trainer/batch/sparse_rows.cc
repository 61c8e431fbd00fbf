#include "trainer/batch/sparse_rows.h"

#include <algorithm>

namespace dtrain {

void SparseBuffer::AddValues(const float* row_values, size_t size) {
  if (values.empty()) {
    const auto is_one = [](float value) { return value == 1; };
    if (row_values == nullptr || std::all_of(row_values, row_values + size, is_one)) return;
    values.reserve(ids.capacity());
    values.assign(ids.size() - size, 1.0f);
  }
  if (row_values == nullptr) {
    values.resize(values.size() + size, 1.0f);
  } else {
    values.insert(values.end(), row_values, row_values + size);
  }
}

void SparseBuffer::AddRow(const SparseBuffer& from, int64_t row) {
  const auto begin = static_cast<size_t>(from.offsets[static_cast<size_t>(row)]);
  const auto end = static_cast<size_t>(from.offsets[static_cast<size_t>(row) + 1]);
  Add(from.ids.data() + begin, from.values.empty() ? nullptr : from.values.data() + begin, end - begin);
}

void WriteNumbers(const SparseRows& rows, const NumberFeatures& numbers, gpu::MatrixView<float> out) {
  std::fill_n(out.data, out.size(), 0.0f);
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      if (rows.ids[i] < numbers.begin) continue;
      out.row(row)[rows.ids[i] - numbers.begin] += rows.values == nullptr ? 1 : rows.values[i];
    }
  }
}

void WriteDense(const SparseRows& rows, gpu::MatrixView<float> out) {
  std::fill_n(out.data, out.rows * out.cols, 0.0f);
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      out.data[row * out.cols + static_cast<int64_t>(rows.ids[i])] +=
          rows.values == nullptr ? 1 : rows.values[i];
    }
  }
}

}  // namespace dtrain
