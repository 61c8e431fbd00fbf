// RowReader: reads the rows of CSV files, JSON lines, IDX images or texts of sparse rows, one after the other
// and in bounded memory, as the model needs them: features in the model's order, found by name, and scaled.
// Implementations: csv_row_reader.cc, json_rows.cc, open_rows.cc (IDX), sparse_row_reader.cc. Errors are
// UserErrors with file, line and column, as in all of trainer/rows. Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/batch.h"
#include "trainer/batch/input_form.h"
#include "trainer/batch/sparse_rows.h"
#include "trainer/config/config.h"
#include "trainer/input/csv_reader.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

enum class RowFormat { kCsv, kJsonLines, kIdx, kSparse };

// SparseSpec: how sparse rows are written.
struct SparseSpec {
  DataConfig data;                          // as data.train and, for tables with labels, data.test say
  std::optional<CsvColumns> train_columns;  // of a table; unset: the columns of each file are those
};

// RowSpec: what rows are read for.
struct RowSpec {
  int64_t inputs = 0;
  InputForm form;
  bool pixels = false;              // features are bytes of images: 0 to 255, which become 0 to 1
  std::optional<RowFormat> format;  // unset: decided by the first bytes of each file
  std::optional<bool> header;       // whether a CSV file has one; unset: decided by its first line
  // The label's column, by name or number; it is not a feature. Empty: unknown.
  std::string label;
  // If set, labels are read too and a row without one is an error. Unset: a label is ignored.
  std::optional<LabelRules> labels;
  CsvDialect dialect;           // of CSV files
  bool refuses_unseen = false;  // a text that is no category of the model is an error (data.unseen)
  // The column of the rows' weights, by name or number; read with labels only. Empty: all count 1.
  std::string weight;
  std::map<std::string, std::string, std::less<>> renamed;  // other spellings of labels
  std::string key = "--data";                               // for messages
  // Columns of the file that are passed on as they are, by name or number; of JSON lines the members.
  std::vector<std::string> keep;
  std::optional<SparseSpec> sparse;  // set: all files are texts of sparse rows
  // Which rows of CSV files are left out (bad_rows, bad_rows_limit, missing); as constructed none.
  DataConfig data;
};

// KeptField: what is passed on of a row.
struct KeptField {
  std::string text;
  bool is_json = false;  // the text of a JSON value; else the content of a field
};

// RowBlock: some rows of a file as the model needs them, with their labels, ids and what else is kept. Owner:
// the command. Thread: one.
struct RowBlock {
  explicit RowBlock(int64_t inputs_of_each, size_t kept_of_each = 0)
      : inputs(inputs_of_each), keeps(kept_of_each) {}

  void Clear();
  // Removes the parts of a row that could not be read to its end.
  void DropUnfinished();
  // Returns all rows; points into this object and is valid until it changes.
  Batch AsBatch();

  const int64_t inputs;
  const size_t keeps;  // RowSpec::keep, if the spec has any
  int64_t rows = 0;
  // [rows, inputs], one of the two: scaled values, or bytes, which are features times 255.
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  SparseBuffer sparse;  // or this, with `rows` rows
  // One of the two, if labels are read.
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<float> weights;    // empty: all rows count 1
  std::vector<std::string> ids;  // as written, in JSON; empty if a row has none
  std::vector<KeptField> kept;   // [rows, keeps]

 private:
  std::vector<int64_t> numbers_;  // 0, 1, ...
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual RowFormat format() const = 0;
  // Appends the next row. Returns false at the end. Throws RowFault if the row cannot be read; the block may
  // have a part of it then (RowBlock::DropUnfinished).
  virtual bool Next(RowBlock* block) = 0;
  // After a RowFault of Next(): the next call reads the row behind the fault.
  virtual void SkipFault() {}
  // What Next() has left out.
  virtual const SkippedRows& skipped() const {
    static const SkippedRows kNone;
    return kNone;
  }
  // What to call what is kept of each row: names of the header, or as RowSpec::keep has them.
  virtual std::vector<std::string> KeptNames() const { return {}; }
  // Whether Next() can return without waiting for more input.
  virtual bool HasMore() const = 0;
};

}  // namespace dtrain
