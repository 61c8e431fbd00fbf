// RowReader: the rows of one file as a trained model needs them, one after the other and in bounded memory:
// features in the model's order, and scaled, beside labels, ids and what is passed on. It opens the file as
// runs do theirs (OpenRowFile). Errors are UserErrors with file, line and column. Owner: the command. Thread:
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/batch.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

// KeptField: what is passed on of a row.
struct KeptField {
  std::string text;
  bool is_json = false;  // the text of a JSON value; else the content of a field
};

// RowBlock: some rows of files as the model needs them, with their ids and what else is kept. Owner: the
// command. Thread: one.
struct RowBlock : ParsedRows {
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
  std::vector<std::string> ids;  // as written, in JSON; empty if a row has none
  std::vector<KeptField> kept;   // [rows, keeps]
  std::vector<float> raw;        // [rows, inputs] features before they are scaled, if RowSpec::names is set

 private:
  std::vector<int64_t> numbers_;  // 0, 1, ...
};

class RowReader {
 public:
  // Opens a file, standard input for "-", or what a command writes for exec:. The path must be the user's own
  // (OpenInput). `idx_labels` is the file of labels for IDX images, if labels are read.
  RowReader(const std::string& path, const RowSpec& spec, const std::string& idx_labels = "");
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // Appends the next row. Returns false at the end. Throws RowFault if the row cannot be read; the block may
  // have a part of it then (RowBlock::DropUnfinished).
  bool Next(RowBlock* block);
  // After a RowFault of Next(): the next call reads the row behind the fault.
  void SkipFault() { file_->SkipFault(); }
  // What Next() has left out.
  const SkippedRows& skipped() const { return skipped_; }
  // What to call what is kept of each row: names of the header, or as RowSpec::keep has them.
  std::vector<std::string> KeptNames() const;
  std::vector<std::string> NumberNames() const { return file_->NumberNames(); }
  // Whether Next() can return without waiting for more input.
  bool HasMore() const { return file_->HasMore(); }
  bool is_json() const { return file_->is_json(); }

 private:
  void Scale(float* features, size_t count) const;

  const RowSpec spec_;
  SkippedRows skipped_;
  std::unique_ptr<RowFile> file_;
  std::optional<RowLabels> labels_;  // of the current row
  std::vector<int64_t> kept_;        // fields
};

}  // namespace dtrain
