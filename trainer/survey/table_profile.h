// TableProfile: what one pass over a text table finds, for a person who has not seen the table yet: its
// delimiter, whether the first line names the columns, the type, gaps and values of each column, and every
// kind of fault with its count and first place. Thread: any; plain data and one function.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {

// Faults: how many fields or rows have a fault, and the first of them.
struct Faults {
  int64_t count = 0;
  TextPlace first;
  std::string example;  // the first one's text, or its number of fields

  void Add(TextPlace place, std::string_view text);
};

enum class ColumnType {
  kEmpty,     // no values at all
  kNumber,    // at least nine tenths of the values are numbers
  kWhole,     // the same, and all numbers are whole
  kDate,      // at least nine tenths are YYYY-MM-DD, with or without a time
  kCategory,  // few different texts
  kText,
};

// "whole number"
const char* TypeName(ColumnType type);

struct ValueCount {
  std::string text;
  int64_t rows = 0;
};

struct ColumnProfile {
  std::string name;  // empty: the file does not name it
  ColumnType type = ColumnType::kEmpty;
  int64_t missing = 0;               // empty, ?, NA, N/A, nan or null, in any case
  int64_t known = 0;                 // all others
  int64_t distinct = 0;              // of the known; in a column of numbers 1 and +1 are the same
  bool more_distinct = false;        // distinct is where counting ended
  int64_t numbers = 0;               // known values that are numbers
  double min = 0, max = 0;           // of the numbers
  double mean = 0, deviation = 0;    // of the numbers
  double skewness = 0;               // the same; 0: they lie evenly about their mean
  std::string example;               // the first known value
  std::vector<ValueCount> frequent;  // the most frequent first, if all distinct ones were counted
  ValueCount rarest;                 // with `frequent`

  // The texts of a category that differ by case or blanks alone: "PARIS/Paris".
  std::vector<std::string> spellings;
  // The texts in a column of numbers that are the same number as a more frequent one: "+1 -> 1".
  std::vector<std::string> respelled;
  bool padded = false;  // blanks stand at the ends of values, and are left out

  Faults not_a_number;  // in a column of numbers
  Faults not_a_date;    // in a column of dates
  Faults not_float;     // infinite, or too large for float32
  Faults not_utf8;

  bool constant = false;    // one value in all rows
  bool index = false;       // 0, 1, 2 .. or 1, 2, 3 .. down the rows
  bool identifier = false;  // whole numbers or texts that all differ
  bool sorted = false;      // rows of one value stand together, or numbers only rise or only fall

  bool IsNumber() const { return type == ColumnType::kNumber || type == ColumnType::kWhole; }
};

enum class Header {
  kNames,     // the first line names the columns
  kNone,      // the first line is a row
  kCounting,  // it is 0, 1, 2 .. or 1, 2, 3 .. over columns of whole numbers, and is taken for a row
  kNumbered,  // it is 0, 1, 2 .. or 1, 2, 3 .. over other columns, and is taken for names
};

struct TableProfile {
  std::string path;
  char delimiter = ',';
  bool decimal_comma = false;  // numbers are written 3,5
  int64_t skip_lines = 0;      // lines at the front that are neither header nor rows
  std::string comment;         // what lines begin with that are left out; empty: there are none
  bool quoted_blanks = false;  // a field in quotes has blanks at its ends: data.trim
  Header header = Header::kNames;
  int64_t rows = 0;  // those with the table's number of fields
  std::vector<ColumnProfile> columns;
  Faults short_rows, long_rows;  // too few and too many fields; not looked at any further
  Faults quotes, empty_lines;

  bool has_names() const { return header == Header::kNames || header == Header::kNumbered; }
};

// Returns what spellings of a text that differ by case or blanks alone have in common.
std::string CommonSpelling(const std::string& text);

// SparseProfile: what one pass over a text of sparse rows finds.
struct SparseProfile {
  std::string path;
  DataFormat format = DataFormat::kNone;  // libsvm, vw or criteo; kNone: it is none of them
  int64_t rows = 0;                       // that can be read, with or without a label
  int64_t inputs = 1;                     // of libsvm: the largest index, and one more if they begin at 0
  int64_t index_base = 1;                 // of libsvm
  Faults faults;                          // of rows that cannot be read
  ColumnProfile label;
};

// Looks at the first lines, and if they are sparse rows reads the whole file. Throws UserError if it cannot
// be read.
SparseProfile ProfileSparseRows(const std::string& path);

// Reads the whole file once; plain or gzip, "-" is standard input. Throws UserError for a file that cannot be
// read and for one that is no text table; what is wrong with its rows is in the profile.
TableProfile ProfileTable(const std::string& path);

// Returns the names that more than one column has.
std::set<std::string> RepeatedNames(const TableProfile& table);

// Returns how a message calls a column: by its name, or "column 3 (number 2)"; the config takes
// the number.
std::string ColumnName(const TableProfile& table, size_t column);

}  // namespace dtrain
