// CsvTable: a CSV file of training or test data, all of it in memory: features as float32 and a label column.
// Every field of a feature must be a finite number. Errors are UserErrors: "file:line:column: name = value;
// rule. remedy".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/view.h"
#include "trainer/config/config.h"
#include "trainer/data/files/csv_columns.h"
#include "trainer/data/files/csv_labels.h"

namespace dtrain {

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
