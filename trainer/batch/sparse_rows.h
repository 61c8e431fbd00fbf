// SparseBuffer: sparse rows in memory of their own. Batches, and rows that were read from files, are in one.
// Owner: who fills it. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/view.h"
#include "trainer/batch/batch.h"

namespace dtrain {

struct SparseBuffer {
  std::vector<int64_t> offsets{0};
  std::vector<uint64_t> ids;
  std::vector<float> values;  // empty: all are 1

  void Clear() {
    offsets.assign(1, 0);
    ids.clear();
    values.clear();
  }
  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  SparseRows rows() const { return {offsets.data(), ids.data(), values.empty() ? nullptr : values.data()}; }

  // Appends a row of `size` features. `row_values`: null: all are 1. Values that are all 1 take no memory
  // until another one comes.
  template <typename Id>
  void Add(const Id* row_ids, const float* row_values, size_t size) {
    ids.insert(ids.end(), row_ids, row_ids + size);
    AddValues(row_values, size);
    offsets.push_back(static_cast<int64_t>(ids.size()));
  }
  // The same for row `row` of `from`.
  void AddRow(const SparseBuffer& from, int64_t row);

 private:
  void AddValues(const float* row_values, size_t size);
};

// Writes the numbers of rows as [count, numbers]; one that a row has not is 0.
void WriteNumbers(const SparseRows& rows, const NumberFeatures& numbers, gpu::MatrixView<float> out);

// Writes rows as [count, columns]; what is none of their features becomes 0, and a feature that comes twice
// counts twice.
void WriteDense(const SparseRows& rows, gpu::MatrixView<float> out);

}  // namespace dtrain
