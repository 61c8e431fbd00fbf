// TextReader: the text of a data file or of a pipe, plain or packed, in a buffer that holds the part being
// read: a record of CSV (csv_reader.h) or a line. It is UTF-8, with or without a byte order mark. Errors are
// UserErrors: "file:line:column: what is wrong; rule. remedy". Owner: the reader of the file. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/input/input_bytes.h"

namespace dtrain {

// TextPlace: a place in the file's content, from 1. Lines are physical lines; the column counts bytes. In a
// file of records (is_record) it is the record's number, and the byte of the content, from 0.
struct TextPlace {
  int64_t line = 1;
  int64_t column = 1;
  bool is_record = false;
};

// TextMark: where a line or a record begins, so that a reader of the same file can go there.
struct TextMark {
  int64_t byte = 0;  // of the content, from 0
  int64_t line = 1;  // or the record's number
};

// RowFault: what is wrong with a row, or at one place of a file. Only such faults may be skipped with their
// rows (data.bad_rows): a file that is damaged or a command that failed ends the reading.
class RowFault : public UserError {
 public:
  using UserError::UserError;
};

// Returns the error "file:line:column: text"; of a record "file, record 3 at byte 38: text".
RowFault FaultAt(const std::string& path, TextPlace place, const std::string& text);

class TextReader {
 public:
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;

  // The begin of the next line that is read.
  TextMark mark() const { return {buffer_byte_ + (begin_.next - buffer_.data()), begin_.line}; }
  // Goes to a mark of this file, which is not before mark() unless the file can seek. `bytes`: how many are
  // read at once there, about; 0: as many as usual.
  void GoTo(TextMark mark, int64_t bytes = 0);
  bool CanSeek() const { return file_->CanSeek(); }

  // The bytes of the whole text; for a packed file, an estimate.
  int64_t content_bytes() const { return file_->ExpectedContent(); }
  // What is kept of a pipe for a second pass (InputBytes::KeepHead).
  int64_t head_bytes() const { return file_->kept(); }
  // Gives the file back. Nothing may be read from this any more.
  std::unique_ptr<InputBytes> Release() { return std::move(file_); }
  const std::string& path() const { return file_->path(); }

 protected:
  // Cursor: the begin of a record or of the field being read; points into buffer_.
  struct Cursor {
    const char* next;
    const char* line_begin;
    int64_t line;
  };

  static constexpr int64_t kMaxRecordBytes = 64 << 20;

  // Reads the first bytes. `too_long` is the rule for a line that does not fit into memory; null: these are
  // records and no text.
  TextReader(std::unique_ptr<InputBytes> file, const char* too_long);
  ~TextReader() = default;

  // Steps over LF, CR LF or CR. Returns false if more bytes are needed to tell which.
  bool EndLine(Cursor* at) const {
    const bool at_last = at->next + 1 == end_;
    const bool carriage = *at->next == '\r';
    if (carriage && at_last && !at_end_) return false;
    at->next += carriage && !at_last && at->next[1] == '\n' ? 2 : 1;
    at->line_begin = at->next;
    ++at->line;
    return true;
  }
  // Reads more: moves the begun record to the front of the buffer, which grows if it is full.
  void Fill();

  static constexpr int64_t kPadding = 16;  // behind *end_, so that scans may read blocks

  std::vector<char> buffer_;  // *end_ is an added line end, at which scans stop; kPadding bytes more
  const char* end_;           // the end of the bytes read
  Cursor begin_;              // of the next record, which begins a line
  bool at_end_ = false;       // the file has no bytes behind those of the buffer
  std::unique_ptr<InputBytes> file_;

 private:
  void SkipByteOrderMark();

  const char* const too_long_;
  int64_t buffer_byte_ = 0;  // of the content, where the buffer begins
  int64_t next_fill_ = 0;    // bytes that Fill() asks for next; 0: as many as fit
};

// LineReader: the lines of a text one by one; they end with LF or CR LF, and the last may lack its end.
class LineReader : public TextReader {
 public:
  explicit LineReader(std::unique_ptr<InputBytes> file);

  // Reads the next line. Returns false at the end of the file.
  bool Next();
  // The last line, without its end; valid until the next call.
  std::string_view line() const { return line_; }
  int64_t number() const { return begin_.line - 1; }  // of the last line, from 1
  // The same with its end.
  std::string_view text() const { return {line_.data(), static_cast<size_t>(begin_.next - line_.data())}; }
  // Whether a line that is not blank can be read without waiting for more of the file, as far as is known.
  bool HasWholeLine() const;

 private:
  std::string_view line_;
};

}  // namespace dtrain
