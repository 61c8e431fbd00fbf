// CsvReader: the records of a CSV file (RFC 4180), one by one. Plain or gzip, UTF-8, with or without a byte
// order mark. Lines end with LF, CR LF or CR; the last may lack its end. Fields are separated by commas; a
// field in quotes may hold commas, line ends and doubled quotes. Blanks around a field are not part of it.
// Empty lines may stand at the end only.
// Errors are UserErrors: "file:line:column: what is wrong; rule. remedy".
// Owner: whatever reads the file. Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "trainer/data/files/input_bytes.h"

namespace dtrain {

// From 1. A line is a physical one of the file's content; the column counts bytes.
struct CsvPlace {
  int64_t line = 1;
  int64_t column = 1;
};

struct CsvField {
  std::string_view text;  // without the quotes around it
  CsvPlace place;         // of its first byte, which may be a quote
  bool quoted = false;
};

// "file:line:column: text".
UserError CsvError(const std::string& path, CsvPlace place, const std::string& text);

class CsvReader {
 public:
  // `key`: "data.train.path", for messages.
  CsvReader(const std::string& path, const std::string& key)
      : CsvReader(std::make_unique<InputBytes>(path, key)) {}
  explicit CsvReader(std::unique_ptr<InputBytes> file);
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  // Reads the next record; false at the end of the file.
  bool Next();
  // The fields of the record last read, at least one, until the next call.
  const std::vector<CsvField>& fields() const { return fields_; }
  CsvPlace record_end() const { return record_end_; }  // just after its last field

  // Whether Next() need not wait for more of the file, as far as can be told.
  bool HasWholeLine() const;

  int64_t record_bytes() const { return record_bytes_; }  // of the records up to now
  // The bytes of all records; where the file is gzip, an estimate.
  int64_t content_bytes() const { return file_->ExpectedContent(); }
  const std::string& path() const { return file_->path(); }

 private:
  // Where a record, or the field being read, begins. Pointers into buffer_.
  struct Cursor {
    const char* next;
    const char* line_begin;
    int64_t line;
  };
  enum class After { kField, kRecord, kMoreBytes };  // kMoreBytes: the buffer ends within the record

  bool SkipEmptyLines();
  bool ReadRecord();
  After ReadField(Cursor* at);
  After ReadQuoted(Cursor* at);
  After EndField(Cursor* at);
  bool EndLine(Cursor* at) const;
  void Fill();
  void FillToLineEnd();
  void SkipByteOrderMark();
  std::string_view WithoutDoubling(std::string_view quoted);
  static CsvPlace PlaceOf(const Cursor& at) { return {at.line, at.next - at.line_begin + 1}; }

  const std::unique_ptr<InputBytes> file_;
  std::vector<char> buffer_;  // its last byte, *end_, is a line end that is not the file's: scans stop there
  const char* end_;           // of the bytes read
  Cursor begin_;              // of the next record: a line's begin
  bool at_end_ = false;       // no bytes follow those of the buffer
  int64_t record_bytes_ = 0;  // of those read up to now
  CsvPlace record_end_;
  std::vector<CsvField> fields_;
  std::deque<std::string> undoubled_;  // texts of fields that had doubled quotes
};

// One field of a CSV file: its text as a number (the nearest float32, whatever the locale) or as a name, and
// what a message says of it. Errors are UserErrors: "file:line:column: width = abc; rule. remedy". Thread:
// any; free functions.
enum class NumberText { kGood, kEmpty, kNoNumber, kNotFinite, kTooLarge };

// All of `text`, such as 5, -0.25, +1e-3 or .5, goes to *number; what is too small for float32 becomes the
// nearest float32. *number is undefined unless kGood.
NumberText ParseNumber(std::string_view text, float* number);

// The rule that a field breaks which is no number: "must be a number".
const char* NumberRule(NumberText state);

// The rule for a value of an image, which is a byte.
constexpr char kPixelRule[] = "must be 0 to 255, as the bytes of images that the model was trained on";
inline bool IsPixel(double value) { return value >= 0 && value <= 255; }

// Refuses a name of a column or of a class that is not UTF-8: logs, checkpoints and answers say names again,
// and there it would not be the file's any more, and two names may become one.
void CheckName(const std::string& path, const CsvField& field);

// The text with the quotes that the file has around and in it.
std::string TextInFile(const CsvField& field);

// "file:line:column: width = abc; rule", the value as it stands in the file. `title` is ColumnTitle().
UserError FieldError(const std::string& path, const std::string& title, const CsvField& field,
                     const std::string& rule);

}  // namespace dtrain
