// All rows of a table in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/view.h"
#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/input/sources.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

// CsvTable: the CSV files of training or test data in memory, as one table: features as float32, and the
// label column. Every feature is a finite number. Errors are UserErrors: "file:line:column: name = value;
// rule. remedy". Thread: any; plain data.
struct CsvTable {
  CsvColumns columns;
  std::vector<InputColumn> how;  // as in CsvLayout
  ParsedRows parsed;             // without labels
  RowLabels labels;
  int64_t inputs = 0;
  SkippedRows skipped;

  gpu::MatrixView<float> Rows() {
    return {parsed.features.data(), static_cast<int64_t>(parsed.features.size()) / inputs, inputs};
  }
};

// Reads data.train, whose files are `inputs`, as one table. `how`: as in CsvLayout.
CsvTable ReadTrainTable(const DataConfig& data, const LabelRules& rules, std::vector<InputColumn> how,
                        SourceInputs* inputs);
// Reads data.test in the same way. Its columns and classes are those of `train`.
CsvTable ReadTestTable(const DataConfig& data, const LabelRules& rules, const CsvTable& train,
                       SourceInputs* inputs);

// CsvReserve: chooses for how many rows to reserve memory while a file of unknown length is read. It
// estimates the rest of the file from the rows since the last call, so that misleading rows at the front do
// no harm. Owner: who reads a table. Thread: one.
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
