// A CSV file as numbers: as a table, or row by row. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/view.h"
#include "trainer/config/config.h"
#include "trainer/data/files/csv_columns.h"
#include "trainer/data/files/csv_reader.h"

namespace dtrain {

// CsvRows: the rows of a CSV file as numbers, one by one: features as float32, in the model's order, and the
// label if there is one. The caller chooses the columns: ReadCsvTable() keeps all rows, CsvRowReader delivers
// them in blocks. Owner: the reader of the file. Thread: one. Errors are UserErrors with file, line and
// column. Of several errors in a row the leftmost is reported; if features are not in column order, those of
// features before those of labels.

// CsvLayout: which columns are read, and as what.
struct CsvLayout {
  CsvColumns columns;             // their names are used in messages
  std::vector<int64_t> features;  // the column of each feature
  bool first_is_row = false;      // the reader's current record is a row and not a header
  bool pixels = false;            // features are in 0 to 255
};

// Returns all columns but the label, in the order of the file.
std::vector<int64_t> FeatureColumns(const CsvColumns& columns);

class CsvRows {
 public:
  // `reader` is at the first record and must outlive this. `first_row_remedy` is the remedy for a text in
  // place of a number in the first row.
  CsvRows(CsvReader* reader, CsvLayout layout, std::string first_row_remedy);

  // Goes to the next row. Returns false at the end of the file. Throws UserError for too few or too many
  // fields.
  bool Next();
  // Appends the row to `features` and `labels`; null: the label is not read.
  void Read(std::vector<float>* features, CsvLabels* labels) const;

  // Whether Next() can return without waiting for more of the file, as far as is known.
  bool HasMore() const { return next_is_read_ || reader_.HasWholeLine(); }

  const CsvLayout& layout() const { return layout_; }

 private:
  void CheckWhole() const;
  void ReadFeatures(size_t begin, size_t end, std::vector<float>* out) const;
  const CsvField& FieldOf(size_t feature) const {
    return reader_.fields()[static_cast<size_t>(layout_.features[feature])];
  }
  [[noreturn]] void Refuse(size_t feature, NumberText state) const;

  CsvReader& reader_;
  const CsvLayout layout_;
  const std::string first_row_remedy_;
  size_t before_label_ = 0;    // features before the label
  bool next_is_read_ = false;  // the reader's current record is the next row
  int64_t row_ = -1;           // from 0
};

// CsvTable: a CSV file of training or test data in memory: features as float32, and the label column. Every
// feature must be a finite number. Errors are UserErrors: "file:line:column: name = value; rule. remedy".
// Thread: any; plain data.
struct CsvTable {
  CsvColumns columns;
  std::vector<float> features;  // [rows, columns.features()]
  CsvLabels labels;

  gpu::MatrixView<float> Rows() {
    const int64_t inputs = columns.features();
    return {features.data(), static_cast<int64_t>(features.size()) / inputs, inputs};
  }
};

// Reads data.train or data.test, as `section` says. For a test file, `train` is the training file's table,
// whose columns and classes it must have, and `train_path` that file's path. For the training file `train` is
// null.
CsvTable ReadCsvTable(const DataSourceConfig& source, const std::string& section, const LabelRules& rules,
                      const CsvTable* train, const std::string& train_path);

// CsvReserve: chooses for how many rows to reserve memory while a file of unknown length is read. It
// estimates the rest of the file from the rows since the last call, so that misleading rows at the front do
// no harm. Owner: ReadCsvTable(). Thread: one.
class CsvReserve {
 public:
  // Call it when the memory for `rows` rows is used up; these took `row_bytes` bytes of about
  // `content_bytes`. Returns the estimated total, but at least an eighth more than `rows` and at most
  // kMaxGrowth times as many. So a few rows cannot cause a huge reservation, and the table is not copied over
  // and over.
  int64_t NextRows(int64_t rows, int64_t row_bytes, int64_t content_bytes);

  static constexpr int64_t kMaxGrowth = 8;

 private:
  int64_t rows_ = 0;  // at the last call
  int64_t row_bytes_ = 0;
};

}  // namespace dtrain
