// Rows in memory: bytes of images, floats of tables, and sparse rows. Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/large_vector.h"
#include "trainer/config/model_config.h"
#include "trainer/input/sources.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/read_table.h"
#include "trainer/rows/row_file.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Labelled rows of bytes, read as floats in [0, 1] (byte / 255). `bytes` is [rows, inputs] row-major, with
// one label per row, each in [0, classes).
DataSet BytesInMemory(LargeVector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs,
                      int64_t classes);

// Rows of floats, `features` [rows, inputs] row-major, which are scaled where they lie.
std::shared_ptr<Fetch> FetchOf(std::vector<float> features, int64_t rows, int64_t inputs);

// CsrRows: the features of sparse rows, 4 bytes each where their numbers fit, and 4 more where a value is not
// 1. Owner: a SparseTable, then a DataSet. Thread: one, until it is filled.
class CsrRows : public Fetch {
 public:
  explicit CsrRows(int64_t inputs) : inputs_(inputs), wide_(HasWideNumbers(inputs)) {}

  void Append(const SparseBuffer& rows);
  // Reserves memory for so many features.
  void Reserve(size_t features);

  int64_t inputs() const { return inputs_; }
  int64_t count() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t features() const { return offsets_.back(); }
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override;
  uint64_t Checksum(const HeldOutView* view) const override;

 private:
  void WillCopy(int64_t row) const;
  void CopyRow(int64_t row, SparseBuffer* to) const;

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
  ParsedRows numbers;  // weights and offsets alone; without weights all rows count 1
  SkippedRows skipped;
  CsvColumns columns;  // of a table; lines of sparse rows have none
};

// The rows of a table, with the names of its classes and what was left out of it as facts.
DataSet TableInMemory(CsvTable table, std::optional<int64_t> classes);
DataSet SparseInMemory(SparseTable table, std::optional<int64_t> classes);

// Reads all rows of `inputs`, those of data.train or data.test, with features [0, width). For data.test,
// `train_columns` and `train_names` are the columns of data.train and the names of its classes; null: this is
// data.train. Throws UserError if there are no rows.
SparseTable ReadSparseTable(const DataConfig& data, const LabelRules& rules, int64_t width,
                            SourceInputs* inputs, const CsvColumns* train_columns = nullptr,
                            const std::vector<std::string>* train_names = nullptr);

}  // namespace dtrain
