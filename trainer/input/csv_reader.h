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
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/text_reader.h"

namespace dtrain {

struct CsvField {
  std::string_view text;  // without the quotes around it
  TextPlace place;        // of its first byte, which may be a quote
  bool quoted = false;
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

class CsvReader : public TextReader {
 public:
  // `key` is "data.train.path" or the like, for messages.
  CsvReader(const std::string& path, const std::string& key, const CsvDialect& dialect = {})
      : CsvReader(std::make_unique<InputBytes>(path, key), dialect) {}
  explicit CsvReader(std::unique_ptr<InputBytes> file, const CsvDialect& dialect = {});

  // Reads the next record. Returns false at the end of the file.
  bool Next();
  // The fields of the last record, at least one; valid until the next call.
  const std::vector<CsvField>& fields() const { return fields_; }
  TextPlace record_end() const { return record_end_; }   // just behind its last field
  TextMark record_mark() const { return record_mark_; }  // the begin of the last record
  // After Next() has thrown: goes on behind the line with the fault.
  void SkipFault();
  void GoTo(TextMark mark, int64_t bytes = 0);

  // Whether Next() can return without waiting for more of the file, as far as is known.
  bool HasWholeLine() const;

  Decimal decimal() const { return dialect_.decimal; }
  int64_t record_bytes() const { return record_bytes_; }  // of the records read so far

 private:
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
  void FillLine();
  bool IsBlank(char c) const { return c == ' ' || (c == '\t' && delimiter_ != '\t'); }
  const char* SkipBlanks(const char* from) const;
  std::string_view UnescapeQuotes(std::string_view quoted);
  static TextPlace PlaceOf(const Cursor& at) { return {at.line, at.next - at.line_begin + 1}; }

  const CsvDialect dialect_;
  bool in_record_ = false;  // Next() has failed within a record
  char delimiter_ = ',';
  std::array<bool, 256> stops_{};  // the bytes at which a field without quotes ends
  int64_t record_bytes_ = 0;       // of the records read so far
  TextMark record_mark_;
  TextPlace record_end_;
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
RowFault FieldError(const std::string& path, const std::string& title, const CsvField& field,
                    const std::string& rule);

}  // namespace dtrain
