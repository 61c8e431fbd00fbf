// Views: a span of elements and a row-major matrix without gaps, in memory that the view does not own. Cheap
// to copy; valid as long as the memory is.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

namespace dtrain::gpu {

template <typename T>
struct Span {
  T* data = nullptr;
  int64_t size = 0;

  Span() = default;
  Span(T* first, int64_t count) : data(first), size(count) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  Span(Span<U> other) : data(other.data), size(other.size) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<std::remove_const_t<T>, U>>>
  Span(std::vector<U>& values) : data(values.data()), size(static_cast<int64_t>(values.size())) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  Span(const std::vector<U>& values) : data(values.data()), size(static_cast<int64_t>(values.size())) {}

  T& operator[](int64_t index) const { return data[index]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
};

template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  MatrixView() = default;
  MatrixView(T* first, int64_t row_count, int64_t col_count)
      : data(first), rows(row_count), cols(col_count) {}
  template <typename U, typename = std::enable_if_t<std::is_same_v<const U, T>>>
  MatrixView(MatrixView<U> other) : data(other.data), rows(other.rows), cols(other.cols) {}

  int64_t size() const { return rows * cols; }
  T* row(int64_t index) const { return data + index * cols; }
};

// ByteRows: rows of a table of bytes, read as a matrix of floats in [0, 1]: element (i, j) is
// table[rows[i]][j] / 255. Images are kept in memory this way, in a quarter of the floats' size.
struct ByteRows {
  MatrixView<const uint8_t> table;
  Span<const int64_t> rows;  // each in [0, table.rows)
};

}  // namespace dtrain::gpu
