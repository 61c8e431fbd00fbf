// RawRows: the rows of a text table for a first look at it, whatever is wrong with them. A table is what
// CsvReader reads, with any of four delimiters. CsvReader cannot be used here: it must refuse a file at its
// first fault, while a first look counts all faults. So faults of quotes, empty lines and the number of
// fields are reported with the row, which is split as well as can be.
// Owner: ProfileTable(). Thread: one. Memory: a block of the file, and a row if it is longer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/input/csv_reader.h"
#include "trainer/input/input_bytes.h"

namespace dtrain {

// SplitRow: one row of a table. Its texts point into the text that it was split from, or into `unescaped`.
struct SplitRow {
  std::vector<CsvField> fields;
  std::deque<std::string> unescaped;  // texts of fields without their doubled quotes
  std::vector<size_t> padded;         // fields with blanks at their ends, which are left out
  TextPlace begin;
  int64_t quote_faults = 0;  // quotes inside a field, texts after a closing quote, quotes that nothing closes
  TextPlace quote_place;     // of the first of them
};

class RawRows {
 public:
  // Reads the first block. Throws UserError if the text is UTF-16.
  explicit RawRows(std::unique_ptr<InputBytes> file);
  RawRows(const RawRows&) = delete;
  RawRows& operator=(const RawRows&) = delete;

  // Leaves out the next line.
  void SkipLine();
  // From now on lines that begin with `comment` are left out.
  void set_comment(std::string comment) { comment_ = std::move(comment); }

  // Splits up to `count` rows of the first block with `delimiter`, and reads on from the same place: the
  // whole table, until Next() is called.
  std::vector<SplitRow> Peek(char delimiter, size_t count) const;

  // Reads the next row; returns false at the end of the file. Throws UserError for a line that is too long
  // for a table.
  bool Next(char delimiter);
  const SplitRow& row() const { return row_; }
  // Empty lines between rows so far, and the place of the first. Those at the file's end do not count.
  int64_t empty_lines() const { return empty_lines_; }
  TextPlace empty_place() const { return {empty_line_, 1}; }

 private:
  bool SkipEmptyLines();
  void Fill();
  bool IsComment(const char* at) const;

  const std::unique_ptr<InputBytes> file_;
  std::vector<char> buffer_;
  const char* next_ = nullptr;  // the rest of the buffer: [next_, end_)
  const char* end_ = nullptr;
  bool at_end_ = false;  // the file has no bytes behind those of the buffer
  std::string comment_;  // empty: there are none
  int64_t line_ = 1;
  int64_t empty_lines_ = 0;
  int64_t empty_line_ = 0;
  SplitRow row_;
};

}  // namespace dtrain
