// CsrSet: sparse rows in memory. Owner: LoadedData, shared. Thread: any; immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/sources.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/sets/source.h"

namespace dtrain {

// CsrRows: the features of rows, 4 bytes each where their numbers fit, and 4 more where a value is not 1.
// Owner: a CsrSet. Thread: one, until it is filled.
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
  // DataFingerprint::features.
  uint64_t Checksum() const;
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

class CsrSet : public DataSet {
 public:
  // If `classes` is set, `labels` holds one label in [0, classes) for each row and `targets` is empty;
  // otherwise the reverse.
  CsrSet(CsrRows rows, std::optional<int64_t> classes, std::vector<int32_t> labels,
         std::vector<float> targets);

  int64_t inputs() const override { return rows_.inputs(); }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return rows_.count(); }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  bool sparse() const override { return true; }
  void GatherSparse(const int64_t* rows, int64_t count, SparseBuffer* features) const override;
  uint64_t Checksum() const override { return rows_.Checksum(); }

 private:
  const CsrRows rows_;
  const std::optional<int64_t> classes_;
  const std::vector<int32_t> labels_;
  const std::vector<float> targets_;
};

// SparseTable: the sparse rows of data.train or data.test in memory.
struct SparseTable {
  CsrRows rows;
  RowLabels labels;
  std::vector<float> weights;  // empty: all rows count 1
  SkippedRows skipped;
  CsvColumns columns;  // of a table; lines of sparse rows have none
};

// Reads all rows of `inputs`, those of data.train or data.test, with features [0, width). For data.test,
// `train_columns` and `train_names` are the columns of data.train and the names of its classes; null: this is
// data.train. Throws UserError if there are no rows.
SparseTable ReadSparseTable(const DataConfig& data, const LabelRules& rules, int64_t width,
                            SourceInputs* inputs, const CsvColumns* train_columns = nullptr,
                            const std::vector<std::string>* train_names = nullptr);

}  // namespace dtrain
