// Sparse rows in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/sources.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// CsrRows: the features of rows, 4 bytes each where their numbers fit, and 4 more where a value is not 1.
// Owner: a SparseTable, then a DataSet. Thread: one, until it is filled.
class CsrRows {
 public:
  explicit CsrRows(int64_t inputs) : inputs_(inputs), wide_(HasWideNumbers(inputs)) {}

  void Append(const SparseBuffer& rows);
  // Reserves memory for so many features.
  void Reserve(size_t features);

  int64_t inputs() const { return inputs_; }
  int64_t count() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t features() const { return offsets_.back(); }
  // Appends a row to `to`.
  void CopyRow(int64_t row, SparseBuffer* to) const;
  // DataFingerprint::features, in the order of the view; null: as they lie.
  uint64_t Checksum(const HeldOutView* view) const;
  // Bring a row near to the processor: first where it begins, then the row.
  // Always inline, because GCC takes a function that only prefetches for one without effects and leaves out
  // its call.
  [[gnu::always_inline]] void WillFind(int64_t row) const { __builtin_prefetch(offsets_.data() + row); }
  [[gnu::always_inline]] void WillCopy(int64_t row) const {
    constexpr int64_t kMaxFeatures = 64;  // longer rows are read in order, which the processor sees itself
    const int64_t begin = offsets_[static_cast<size_t>(row)];
    const int64_t end = std::min(offsets_[static_cast<size_t>(row) + 1], begin + kMaxFeatures);
    wide_ ? Prefetch(wide_ids_, begin, end) : Prefetch(narrow_ids_, begin, end);
    if (!values_.empty()) Prefetch(values_, begin, end);
  }

 private:
  template <typename T>
  [[gnu::always_inline]] static void Prefetch(const std::vector<T>& values, int64_t begin, int64_t end) {
    constexpr int64_t kInLine = 64 / sizeof(T);
    for (int64_t i = begin; i < end; i += kInLine) __builtin_prefetch(values.data() + i);
  }

  int64_t inputs_;
  bool wide_;
  std::vector<int64_t> offsets_{0};
  std::vector<uint32_t> narrow_ids_;
  std::vector<uint64_t> wide_ids_;
  std::vector<float> values_;  // empty: all are 1
};

// SparseTable: the sparse rows of data.train or data.test in memory.
struct SparseTable {
  CsrRows rows;
  RowLabels labels;
  std::vector<float> weights;  // empty: all rows count 1
  SkippedRows skipped;
  CsvColumns columns;  // of a table; lines of sparse rows have none
};

std::shared_ptr<Fetch> FetchOf(CsrRows rows);
// The rows of a table, with the names of its classes and what was left out of it as facts.
DataSet SparseInMemory(SparseTable table, std::optional<int64_t> classes);

// Reads all rows of `inputs`, those of data.train or data.test, with features [0, width). For data.test,
// `train_columns` and `train_names` are the columns of data.train and the names of its classes; null: this is
// data.train. Throws UserError if there are no rows.
SparseTable ReadSparseTable(const DataConfig& data, const LabelRules& rules, int64_t width,
                            SourceInputs* inputs, const CsvColumns* train_columns = nullptr,
                            const std::vector<std::string>* train_names = nullptr);

}  // namespace dtrain
