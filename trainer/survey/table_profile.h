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
#include "trainer/rows/csv_header.h"
#include "trainer/survey/column_profile.h"

namespace dtrain {

struct TableProfile {
  std::string path;
  char delimiter = ',';
  bool decimal_comma = false;  // numbers are written 3,5
  int64_t skip_lines = 0;      // lines at the front that are neither header nor rows
  std::string comment;         // what lines begin with that are left out; empty: there are none
  bool quoted_blanks = false;  // a field in quotes has blanks at its ends: data.trim
  HeaderKind header = HeaderKind::kNames;
  int64_t rows = 0;  // those with the table's number of fields
  std::vector<ColumnProfile> columns;
  Faults short_rows, long_rows;  // too few and too many fields; not looked at any further
  Faults quotes, empty_lines;

  bool has_names() const { return header == HeaderKind::kNames || header == HeaderKind::kNumbered; }
};

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
