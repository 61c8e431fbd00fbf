// CsvReader: reads the records of a CSV file (RFC 4180) one by one. The file is plain or gzip, in UTF-8, with
// or without a byte order mark. Lines end with LF, CR LF or CR; the last may lack its end. A comma, tab,
// semicolon or bar separates the fields; a field in quotes may contain it, line ends and doubled quotes.
// Blanks around a field are ignored. Empty lines are allowed only at the end. Lines at the front and comments
// may be left out (CsvDialect).
// Errors are UserErrors: "file:line:column: what is wrong; rule. remedy". Owner: the reader of the file.
// Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/data/files/input_bytes.h"

namespace dtrain {

// CsvPlace: a place in the file's content, from 1. Lines are physical lines; the column counts bytes.
struct CsvPlace {
  int64_t line = 1;
  int64_t column = 1;
};

// CsvMark: where a record begins, so that a reader of the same file can go there.
struct CsvMark {
  int64_t byte = 0;  // of the content, from 0
  int64_t line = 1;
};

struct CsvField {
  std::string_view text;  // without the quotes around it
  CsvPlace place;         // of its first byte, which may be a quote
  bool quoted = false;
};

// CsvFault: what is wrong with a row, or at one place of a file. Only such faults may be skipped with their
// rows (data.bad_rows): a file that is damaged or a command that failed ends the reading.
class CsvFault : public UserError {
 public:
  using UserError::UserError;
};

// CsvDialect: what a file differs in from others, by the keys of `data`.
struct CsvDialect {
  Delimiter delimiter = Delimiter::kAuto;  // kAuto: the first lines decide (FindDelimiter)
  Decimal decimal = Decimal::kPoint;
  int64_t skip_lines = 0;  // at the front
  std::string comment{};   // lines that begin with it are left out; empty: there are none
  bool trim = false;       // leaves out blanks at the ends of a field in quotes
};
CsvDialect DialectOf(const DataConfig& data);

// Returns the error "file:line:column: text".
CsvFault CsvError(const std::string& path, CsvPlace place, const std::string& text);

class CsvReader {
 public:
  // `key` is "data.train.path" or the like, for messages.
  CsvReader(const std::string& path, const std::string& key, const CsvDialect& dialect = {})
      : CsvReader(std::make_unique<InputBytes>(path, key), dialect) {}
  explicit CsvReader(std::unique_ptr<InputBytes> file, const CsvDialect& dialect = {});
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  // Reads the next record. Returns false at the end of the file.
  bool Next();
  // The fields of the last record, at least one; valid until the next call.
  const std::vector<CsvField>& fields() const { return fields_; }
  CsvPlace record_end() const { return record_end_; }  // just behind its last field
  // After Next() has thrown: goes on behind the line with the fault.
  void SkipFault();

  // The begin of the next record.
  CsvMark mark() const { return {buffer_byte_ + (begin_.next - buffer_.data()), begin_.line}; }
  CsvMark record_mark() const { return record_mark_; }  // the begin of the last record
  // Goes to a mark of this file, which is not before mark() unless the file can seek. `bytes`: how many are
  // read at once there, about; 0: as many as usual.
  void GoTo(CsvMark mark, int64_t bytes = 0);
  bool CanSeek() const { return file_->CanSeek(); }

  // Whether Next() can return without waiting for more of the file, as far as is known.
  bool HasWholeLine() const;

  Decimal decimal() const { return dialect_.decimal; }
  int64_t record_bytes() const { return record_bytes_; }  // of the records read so far
  // The bytes of all records; for gzip, an estimate.
  int64_t content_bytes() const { return file_->ExpectedContent(); }
  // What is kept of a pipe for a second pass (InputBytes::KeepHead).
  int64_t head_bytes() const { return file_->kept(); }
  // Gives the file back. Nothing may be read from this any more.
  std::unique_ptr<InputBytes> Release() { return std::move(file_); }
  const std::string& path() const { return file_->path(); }

 private:
  // Cursor: the begin of a record or of the field being read; points into buffer_.
  struct Cursor {
    const char* next;
    const char* line_begin;
    int64_t line;
  };
  enum class After { kField, kRecord, kMoreBytes };  // kMoreBytes: the buffer ends within the record

  void SkipLine();
  bool BeginsComment();
  char ChooseDelimiter();
  bool SkipEmptyLines();
  bool ReadPlainRecord();
  void AddPlainField(const char* begin, const char* end);
  bool ReadRecord();
  After ReadField(Cursor* at);
  After ReadQuoted(Cursor* at);
  After EndField(Cursor* at);
  bool EndLine(Cursor* at) const;
  void Fill();
  void FillLine();
  void SkipByteOrderMark();
  bool IsBlank(char c) const { return c == ' ' || (c == '\t' && delimiter_ != '\t'); }
  const char* SkipBlanks(const char* from) const;
  std::string_view UnescapeQuotes(std::string_view quoted);
  static CsvPlace PlaceOf(const Cursor& at) { return {at.line, at.next - at.line_begin + 1}; }

  std::unique_ptr<InputBytes> file_;
  const CsvDialect dialect_;
  std::vector<char> buffer_;  // *end_ is an added line end, at which scans stop; kPadding bytes more
  const char* end_;           // the end of the bytes read
  Cursor begin_;              // of the next record, which begins a line
  int64_t buffer_byte_ = 0;   // of the content, where the buffer begins
  bool at_end_ = false;       // the file has no bytes behind those of the buffer
  bool in_record_ = false;    // Next() has failed within a record
  char delimiter_ = ',';
  std::array<bool, 256> stops_{};  // the bytes at which a field without quotes ends
  int64_t record_bytes_ = 0;       // of the records read so far
  int64_t next_fill_ = 0;          // bytes that Fill() asks for next; 0: as many as fit
  CsvMark record_mark_;
  CsvPlace record_end_;
  std::vector<CsvField> fields_;
  std::deque<std::string> unescaped_;  // texts of fields without their doubled quotes
};

// Returns the byte that separates fields in the text that a file begins with: of comma, tab, semicolon and
// bar the first that gives every whole line of the text the same number of fields, at least two; if none
// does, that which the first line has most often; a comma if it has none. Where a comma separates decimals it
// is not among them.
char FindDelimiter(std::string_view text, Decimal decimal = Decimal::kPoint);

// Whether a field says that there is no value: it is empty, ?, NA, N/A, null or nan, in any case.
bool IsMissing(std::string_view text);

// Fields of a CSV file: the text as a number (the nearest float32, independent of the locale) or as a name,
// and messages about it. Errors are UserErrors: "file:line:column: width = abc; rule. remedy". Thread: any;
// free functions.
enum class NumberText { kGood, kEmpty, kNotANumber, kNotFinite, kTooLarge, kNotADate };

// Converts all of `text`, such as 5, -0.25, +1e-3 or .5, to *number; values too small for float32 become the
// nearest float32. *number is undefined unless the result is kGood.
NumberText ParseNumber(std::string_view text, float* number);
// The same with a comma before the decimals, if `decimal` says so; then a point is no number's.
NumberText ParseNumber(std::string_view text, Decimal decimal, float* number);
// Converts a date to days since 1970 (iso_date.h).
NumberText ParseDate(std::string_view text, float* number);

// Returns the rule that a field breaks if it is not kGood: "must be a number".
const char* NumberRule(NumberText state);

// The rule for a value of an image, which is a byte.
constexpr char kPixelRule[] = "must be 0 to 255, as the bytes of images that the model was trained on";
inline bool IsPixel(double value) { return value >= 0 && value <= 255; }

// Throws if a column's or class's name is not UTF-8. Logs, checkpoints and answers repeat names; there it
// would differ from the file's, and two names could become one.
void CheckName(const std::string& path, const CsvField& field);

// Returns the text as it is in the file, with its quotes.
std::string TextInFile(const CsvField& field);

// Returns "file:line:column: width = abc; rule", with the value as it is in the file. `title` is
// ColumnTitle().
CsvFault FieldError(const std::string& path, const std::string& title, const CsvField& field,
                    const std::string& rule);

}  // namespace dtrain
