// A CSV file as numbers: all of it as a table, or row by row.
// Errors are UserErrors with file, line and column.
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
// label where there is one. What reads rows chooses the columns, and what it does with the rows:
// ReadCsvTable() keeps all of them, CsvRowReader hands them on in blocks. Owner: whoever reads the file.
// Thread: one. Errors are UserErrors with file, line and column; of several in one row the leftmost is told,
// labels behind the features where `features` are in another order than the columns.

// Which columns are read, and as what.
struct CsvLayout {
  CsvColumns columns;             // their names are what messages call them
  std::vector<int64_t> features;  // the column of each feature
  bool first_is_row = false;      // the reader's record is a row already, not a header
  bool pixels = false;            // features are 0 to 255
};

// All columns but the label, in the order of the file.
std::vector<int64_t> FeatureColumns(const CsvColumns& columns);

class CsvRows {
 public:
  // `reader` stands at the first record and must outlive this. `first_row_remedy`: what to do about a text
  // where a number should be in the first row.
  CsvRows(CsvReader* reader, CsvLayout layout, std::string first_row_remedy);

  // Goes to the next row; false at the end of the file. UserError where it has too few or too many fields.
  bool Next();
  // Appends the row to `features` and `labels`; null: its label is not read.
  void Read(std::vector<float>* features, CsvLabels* labels) const;

  // Whether Next() need not wait for more of the file, as far as can be told.
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
  size_t before_label_ = 0;    // features that stand before the label
  bool next_is_read_ = false;  // the reader's record is the next row
  int64_t row_ = -1;           // from 0
};

// CsvTable: a CSV file of training or test data, all of it in memory: features as float32 and a label column.
// Every field of a feature must be a finite number. Errors are UserErrors: "file:line:column: name = value;
// rule. remedy".
struct CsvTable {
  CsvColumns columns;
  std::vector<float> features;  // [rows, columns.features()]
  CsvLabels labels;

  gpu::MatrixView<float> Rows() {
    const int64_t inputs = columns.features();
    return {features.data(), static_cast<int64_t>(features.size()) / inputs, inputs};
  }
};

// Reads data.train or data.test, as `section` says. `train`: the training file's table, whose columns and
// classes a test file must have, and `train_path` its path; null: the file is the training file.
CsvTable ReadCsvTable(const DataSourceConfig& source, const std::string& section, const LabelRules& rules,
                      const CsvTable* train, const std::string& train_path);

// CsvReserve: for how many rows to take memory while a file of unknown length is read. What is left of the
// file is estimated from the rows since the last answer, so that one misleading row at the front does no
// harm. Owner: ReadCsvTable(). Thread: one.
class CsvReserve {
 public:
  // Asked when there is memory for `rows` rows and all is used; they had `row_bytes` bytes together, of a
  // content of about `content_bytes`. Returns more than `rows`: as many as the file is thought to hold, but
  // at most kMaxGrowth times as many, and at least an eighth more, so that memory is neither taken in vain
  // on the word of a few rows nor copied over and over.
  int64_t NextRows(int64_t rows, int64_t row_bytes, int64_t content_bytes);

  static constexpr int64_t kMaxGrowth = 8;

 private:
  int64_t rows_ = 0;  // when it was last asked
  int64_t row_bytes_ = 0;
};

}  // namespace dtrain
