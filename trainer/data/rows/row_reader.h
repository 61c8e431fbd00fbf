// RowReader: the rows of CSV files, JSON lines or IDX images, one after the other and in bounded memory, as
// the model takes them: features in the model's order by their names, scaled. Implementations:
// csv_row_reader.cc, json_rows.cc, idx_rows.cc. Errors are UserErrors with file, line and column, as in
// trainer/data/files.
// Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/files/label_rules.h"

namespace dtrain {

enum class RowFormat { kCsv, kJsonLines, kIdx };

// What rows are read for.
struct RowSpec {
  int64_t inputs = 0;
  InputForm form;
  bool pixels = false;              // features are bytes of images: values of 0 to 255, which become 0 to 1
  std::optional<RowFormat> format;  // unset: the first bytes of each file tell
  std::optional<bool> header;       // whether a CSV file has one; unset: its first line tells
  // The label's column, by name or number: it is no feature. Empty: none is known.
  std::string label;
  // Labels are read, too; a row without one is an error. Unset: a label is left out where there is one.
  std::optional<LabelRules> labels;
  std::string key = "--data";  // for messages
};

// RowBlock: some rows of a file as a model takes them, with what else was read of each.
// Owner: the command. Thread: one.
struct RowBlock {
  explicit RowBlock(int64_t inputs_of_each) : inputs(inputs_of_each) {}

  void Clear();
  // Drops what was read of a row that could not be read to its end.
  void DropUnfinished();
  // All rows; points into this, until it changes.
  Batch AsBatch();

  const int64_t inputs;
  int64_t rows = 0;
  // [rows, inputs], one of the two: scaled values, or bytes, each a feature times 255.
  std::vector<float> floats;
  std::vector<uint8_t> bytes;
  // Where labels were asked for, one of the two.
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<std::string> ids;  // as they were written, in JSON; empty where a row has none

 private:
  std::vector<int64_t> numbers_;  // 0, 1, ...
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  virtual RowFormat format() const = 0;
  // Appends the next row; false at the end.
  virtual bool Next(RowBlock* block) = 0;
  // Whether Next() need not wait for somebody who types, or for a pipe.
  virtual bool HasMore() const = 0;
};

}  // namespace dtrain
