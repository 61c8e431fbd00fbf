// TableProfile: what one pass over a text table finds, for a person who has not seen the table yet: its
// delimiter, whether the first line names the columns, the type, gaps and values of each column, and every
// kind of fault with its count and first place. Thread: any; plain data and one function.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/rows/csv_header.h"
#include "trainer/survey/column_profile.h"

namespace dtrain {

struct TableProfile {
  std::string path;  // as it was given: of a file, or a pattern
  char delimiter = ',';
  bool finds_delimiter = true;  // data.delimiter: auto finds it
  Quotes quoting = Quotes::kDouble;
  bool decimal_comma = false;  // numbers are written 3,5
  int64_t skip_lines = 0;      // lines at the front that are neither header nor rows
  std::string comment;         // what lines begin with that are left out; empty: there are none
  bool quoted_blanks = false;  // a field in quotes has blanks at its ends: data.trim
  HeaderKind header = HeaderKind::kNames;
  int64_t rows = 0;        // those with the table's number of fields
  int64_t unreadable = 0;  // of them those with a text in a column of numbers or dates; of a pipe not counted
  std::vector<ColumnProfile> columns;
  Faults short_rows, long_rows;  // too few and too many fields; not looked at any further
  Faults quotes, empty_lines;
  Faults records;           // of TFRecord that have not the features of the first ones
  Faults headers;           // lines that are the header again, or a second line of names or units
  Faults first_row;         // without a header: it has other fields than most rows, or a fault of quotes
  bool tfrecord = false;    // it is no text: records of tf.train.Example, which name the columns
  bool arff = false;        // the text is Weka's ARFF, whose rows have no header; columns have their names
  bool names_rows = false;  // the header has no name for the first column, which the table has

  bool has_names() const { return header == HeaderKind::kNames || header == HeaderKind::kNumbered; }
};

// Reads all of a table: a file, plain or packed, those that fit a pattern, or what a pipe has
// (SourceFiles()). `label`: a name that the user has given for the label's column; empty: none. Throws
// UserError for a file that cannot be read and for one that is no text table; what is wrong with its rows is
// in the profile. `like`: a table with the same columns, whose gaps, dates and units these are too; null:
// none.
TableProfile ProfileTable(const std::string& path, const std::string& label = "",
                          const TableProfile* like = nullptr);

// Returns the column of this name, or where that is null the one at this place; null: there is none.
const ColumnProfile* FindColumn(const TableProfile& table, const std::string* name, size_t place);

// Returns the names that more than one column has.
std::set<std::string> RepeatedNames(const TableProfile& table);

// Returns how a message calls a column: by its name, or "column 3 (number 2)"; the config takes
// the number.
std::string ColumnName(const TableProfile& table, size_t column);

}  // namespace dtrain
