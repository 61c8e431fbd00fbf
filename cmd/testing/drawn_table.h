// DrawnTable: a table as a user may have it, drawn by a seed, and what is known of it because it was made so:
// which column decides the label, which classes there are, how many rows. The same rows are there a second
// time in the plainest writing, which any program reads. Equal seeds give equal tables on every machine.
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::testing {

struct DrawnFile {
  std::string name;
  std::string content;  // before it is packed
};

struct DrawnTable {
  std::vector<DrawnFile> files;  // of one table, in their order
  std::string argument;          // the file, or the pattern of the files
  bool gzip = false;             // the names end with .gz
  // The same rows: commas, points before decimals, empty gaps, dates as 2024-01-31.
  std::string plain;
  std::string label;         // for --label; empty: it is found by its name, or because it is the last
  std::string plain_label;   // the same for the plain table
  std::string label_column;  // its name, or its number where no line names the columns
  std::string signal;        // the column that decides the label, as features are called: "age", "column 3"
  std::vector<std::string> classes;  // empty: the label is a quantity
  bool may_be_quantity = false;      // the classes may be taken for numbers: -1, 0 and 1
  int64_t rows = 0;                  // that can be read, those without a label too
  int64_t unlabelled = 0;            // rows whose label is missing
  int64_t bad_rows = 0;              // more rows, which cannot be read: too short or too long
  int64_t other_lines = 0;           // that are no rows and may be told as such: units, names that come again
  // Columns that can be read in two ways, which the file alone does not tell apart: init may ask about these.
  std::vector<std::string> doubtful;
  bool may_refuse = false;          // the column that decides the label is one of these
  std::vector<std::string> traits;  // what was drawn, in words
};

DrawnTable DrawTable(uint64_t seed);

}  // namespace dtrain::testing
