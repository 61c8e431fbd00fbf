// CsvReader: reads the records of a CSV file (RFC 4180) one by one. The file is plain or gzip, in UTF-8, with
// or without a byte order mark. Lines end with LF, CR LF or CR; the last may lack its end. A field in quotes
// may contain the delimiter, line ends and doubled quotes, and ="007" is one; a quote that does not begin its
// field is a character. Blanks around a field and lines of blanks are ignored. Lines at the front and
// comments may be left out (CsvDialect). A lenient reader is for a first look at a table, whatever is wrong
// with it: it counts faults of quotes in place of throwing, and splits the record as well as can be. Records
// of other lengths are no fault here; a reader of tables counts the fields. Errors are UserErrors:
// "file:line:column: what is wrong; rule. remedy". Owner: the reader of the file. Thread: one. What is
// virtual is otherwise where a table is no text (trainer/rows/example_reader.h).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/input/csv_field.h"
#include "trainer/input/field_reading.h"
#include "trainer/input/text_reader.h"

namespace dtrain {

// CsvDialect: what a file differs in from others, by the keys of `data`.
struct CsvDialect {
  Delimiter delimiter = Delimiter::kAuto;  // kAuto: the first lines decide
  Decimal decimal = Decimal::kPoint;
  int64_t skip_lines = 0;  // at the front
  std::string comment{};   // lines that begin with it are left out; empty: there are none
  bool trim = false;       // leaves out blanks at the ends of a field in quotes
  Quotes quotes = Quotes::kDouble;
  bool may_differ = false;  // if the delimiter is not in the first record, another one is found, as for kAuto
  char within = '\0';       // separates texts of a field: kAuto takes another delimiter, if there is one
};
CsvDialect DialectOf(const DataConfig& data);
// The key for a delimiter that the first lines can decide for.
Delimiter DelimiterOf(char delimiter);
// The character of a delimiter; kBlanks: ' '. Not for kAuto.
char CharacterOf(Delimiter delimiter);
// What separates the texts of data.bags.
char SeparatorOf(const DataConfig& data);

// CsvRecord: one record. Its texts point into the reader's buffer, or into `unescaped`.
struct CsvRecord {
  std::vector<CsvField> fields;       // at least one
  std::deque<std::string> unescaped;  // texts of fields without their doubled quotes, a quote before each
  // What only a lenient reader counts: texts after a closing quote and quotes that nothing closes, and the
  // place of the first.
  int64_t quote_faults = 0;
  TextPlace quote_place;

  TextPlace begin() const {
    return fields[0].place.is_record ? fields[0].place : TextPlace{fields[0].place.line, 1};
  }
};

class CsvReader : public TextReader {
 public:
  // `key` is "data.train.path" or the like, for messages.
  CsvReader(const std::string& path, const std::string& key, const CsvDialect& dialect = {})
      : CsvReader(std::make_unique<InputBytes>(path, key), dialect) {}
  explicit CsvReader(std::unique_ptr<InputBytes> file, const CsvDialect& dialect = {});
  // A lenient reader. Reads the first block, which Peek() looks at.
  struct Lenient {};
  CsvReader(std::unique_ptr<InputBytes> file, Lenient lenient);
  virtual ~CsvReader() = default;

  // Whether the first record is the names of the columns in any case, and no other is a header: the file is
  // no text, and its records have the names.
  virtual bool names_columns() const { return false; }
  // The caller reads this column, as a number if there is one (CsvField::is_number) or as text. Before the
  // first call all columns are texts; after it others are undefined where the file is no text.
  virtual void Take(int64_t /*column*/, bool /*as_number*/) {}
  // The same for a column whose fields have several values each, which ReadList() reads.
  virtual void TakeList(int64_t column, bool as_number) { Take(column, as_number); }

  // From here on the text is written so. Call it before Next() of a lenient reader, once or more.
  virtual void Begin(const CsvDialect& dialect);
  // Splits up to `count` records with `delimiter`, those whose text was read already, and stays where it is.
  // They are valid until Next() or Begin().
  std::vector<CsvRecord> Peek(char delimiter, Quotes quotes, size_t count);
  // The same as the file is read, and behind the last record, which stays; waits for the first of them.
  std::vector<CsvRecord> PeekNext(size_t count);
  CsvRecord* mutable_record() { return &record_; }

  // From the current record on the fields of some columns are written so, and become plain.
  void ReadAs(std::vector<FieldReading> readings);
  const std::vector<FieldReading>& readings() const { return readings_; }

  // Reads the next record. Returns false at the end of the file.
  virtual bool Next();
  // Goes behind the next record without splitting it; one with quotes is split to find its end. `text` is all
  // of it, with its end, and valid until the next call; fields() are undefined. Returns false at the end of
  // the file.
  virtual bool NextText(std::string_view* text);
  // The fields of the last record, at least one; valid until the next call.
  const std::vector<CsvField>& fields() const { return record_.fields; }
  const CsvRecord& record() const { return record_; }
  // Calls on_value for each of the values of a field, which `separator` separates, with the blanks round it
  // left out. False: the field says that there is none.
  virtual bool ReadList(int64_t column, char separator,
                        const std::function<void(const CsvField&)>& on_value) const;
  // Whether blanks behind the field, or inside its quotes, were left out.
  bool IsTrimmed(const CsvField& field) const {
    if (names_columns()) return false;
    return field.quoted ? field.trimmed : IsBlank(*(field.text.data() + field.text.size()));
  }
  // Returns the error "file:line:column: text" about a field of the last record.
  RowFault FaultAtRecord(const std::string& text, int64_t field = 0) const {
    return FaultAt(path(), record_.fields[static_cast<size_t>(field)].place, text);
  }
  // The field as it is in the file, with the blanks that data.trim leaves out.
  std::string_view WholeText(const CsvField& field) const;
  TextPlace record_end() const { return record_end_; }   // just behind its last field
  TextMark record_mark() const { return record_mark_; }  // the begin of the last record
  // After Next() has thrown: goes on behind the line with the fault.
  virtual void SkipFault();
  void GoTo(TextMark mark, int64_t bytes = 0);

  // Whether Next() can return without waiting for more of the file, as far as is known.
  virtual bool HasWholeLine() const;

  Decimal decimal() const { return dialect_.decimal; }
  char delimiter() const { return delimiter_; }
  // Empty lines between records so far, and the place of the first.
  int64_t empty_lines() const { return empty_lines_; }
  TextPlace empty_place() const { return {empty_line_, 1}; }

 protected:
  // For a reader of a file that is no text.
  struct Records {};
  CsvReader(std::unique_ptr<InputBytes> file, Records /*records*/) : TextReader(std::move(file), nullptr) {}

  bool More();
  void MakePlain();

  bool peeks_ = false;  // reads nothing more of the file
  std::vector<FieldReading> readings_;
  TextMark record_mark_;
  CsvRecord record_;

 private:
  enum class After { kField, kRecord, kMoreBytes };  // kMoreBytes: the buffer ends within the record

  void SetDelimiter(char delimiter, Quotes quotes);
  void SkipLine();
  bool BeginsComment();
  char ChooseDelimiter();
  bool SkipEmptyLines();
  template <typename Find>
  bool FindRecord(Find find);
  template <bool splits>
  bool ReadPlainRecord();
  void AddPlainField(const char* begin, const char* end);
  bool ReadRecord();
  After ReadField(Cursor* at);
  After ReadPlain(Cursor* at, const char* begin, TextPlace place);
  After ReadQuoted(Cursor* at, TextPlace place);
  bool IsEscape(const char* at) const;
  After EndField(Cursor* at);
  void OnQuoteFault(TextPlace place, const char* rule);
  bool FillLine();
  // Written so that a byte that is none takes two branches: this is asked twice a field.
  bool IsBlank(char c) const { return (c == ' ' || c == '\t') && c != delimiter_ && delimiter_ != ' '; }
  bool HasBlankLine();
  const char* SkipBlanks(const char* from) const;
  std::string_view Unescape(std::string_view text);
  static TextPlace PlaceOf(const Cursor& at) { return {at.line, at.next - at.line_begin + 1}; }

  CsvDialect dialect_;
  // What MakePlain() has made of fields of the current record, and what they were.
  std::vector<std::pair<std::string, std::string_view>> plain_;
  const bool lenient_ = false;
  bool in_record_ = false;                // Next() has failed within a record
  bool in_quotes_ = false;                // ReadRecord() has seen a quote that is still open
  char delimiter_ = ',';                  // ' ': blanks and tabs
  char quote_ = '"';                      // 0: there is none
  bool escapes_ = false;                  // by backslashes
  bool simple_ = true;                    // most records have nothing but delimiters in them
  std::array<bool, 256> stops_{};         // the bytes at which a field without quotes ends
  std::array<bool, 256> quoted_stops_{};  // and one in quotes, perhaps
  TextPlace record_end_;
  int64_t empty_lines_ = 0;
  int64_t empty_line_ = 0;  // the first of them
};

}  // namespace dtrain
