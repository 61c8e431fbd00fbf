// Pass: one reading of all rows of a source, whose files are one sequence. Whatever is made of rows takes
// them from a pass: a table in memory, a cache, an index, a window of a pipe, counts, the fit of columns.
// Owner: who makes it. Thread: one. Errors are UserErrors with file, line and column; a later file must have
// the columns of the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/input/sources.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

class Pass {
 public:
  // Opens the first file of `inputs`. `context` is that of the first file: what later ones need beside it is
  // added here. `data` must outlive this, and `inputs` too unless it is a pipe.
  Pass(const DataConfig& data, RowContext context, SourceInputs* inputs);
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // Returns the labels to give to Next(), none yet. `train_names`: for data.test the names of the classes of
  // data.train; null: this is data.train.
  RowLabels NewLabels(const LabelRules& rules, const std::vector<std::string>* train_names = nullptr) const;

  // Appends the next row, as RowFile::Next() does; opens the next file where one ends. False: there are no
  // more rows.
  bool Next(ParsedRows* rows, RowLabels* labels) {
    while (!rows_->Next(rows, labels)) {
      if (!NextFile(labels)) return false;
    }
    ++count_;
    return true;
  }
  // Opens a file once more that this has come to and that can seek, for another reader of its rows, on any
  // thread.
  std::unique_ptr<RowFile> OpenAgain(size_t file, SkippedRows* skipped) const;
  // Another reader has read the next `count` rows of this file, up to `mark`, and has left out `skipped`.
  void StepOver(int64_t count, TextMark mark, const SkippedRows& skipped);

  // Call it when Next() has returned false: numbers the classes. Throws UserError if there were no rows.
  void Finish(RowLabels* labels) const;

  int64_t count() const { return count_; }  // rows so far
  // The file of the last row, by number; whether that row is the file's first; where the file's first row
  // begins (RowFile::mark()).
  size_t file() const { return file_; }
  bool begins_file() const { return count_ == first_row_ + 1; }
  TextMark file_begin() const { return file_begin_; }
  RowFile& rows() const { return *rows_; }

  const DataConfig& data() const { return data_; }
  const CsvColumns& columns() const { return columns_; }  // as RowFile has them
  int64_t inputs() const { return rows_->inputs(); }      // features of a row
  const SkippedRows& skipped() const { return skipped_; }

  // The bytes of text so far, and about how many there are in all.
  int64_t read_bytes() const { return bytes_before_ + rows_->mark().byte; }
  int64_t expected_bytes() const;

 private:
  void Open();
  bool NextFile(RowLabels* labels);

  const DataConfig& data_;
  RowContext context_;
  SourceInputs& inputs_;
  const std::string key_;
  const size_t files_;
  SkippedRows skipped_;
  size_t file_ = 0;
  std::unique_ptr<RowFile> rows_;
  CsvColumns columns_;
  TextMark file_begin_;
  int64_t count_ = 0;
  int64_t first_row_ = 0;     // of the file
  int64_t bytes_before_ = 0;  // of the files before
};

// Reads all rows that `pass` has left, to be kept in memory, with data.threads (all_rows.cc). `take` gets
// them in order, about a MiB at a time; their labels are in `labels` before. Pass::Finish() is left to the
// caller.
void ReadAllRows(Pass* pass, RowLabels* labels, const std::function<void(const ParsedRows&)>& take);

}  // namespace dtrain
