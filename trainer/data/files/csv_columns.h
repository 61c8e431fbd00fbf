// CsvColumns: the columns of a CSV file, how many there are, their names where a header tells, and which is
// the label. In training data all others are features, in their order. Thread: any; plain values and free
// functions. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/csv_reader.h"

namespace dtrain {

struct CsvColumns {
  std::vector<std::string> names;  // empty without a header
  int64_t count = 0;
  int64_t label = 0;  // its number, from 0; -1: there is none

  int64_t features() const { return count - 1; }
};

// The columns of a data source, from the first record, which becomes the reader's. `section` is "data.train"
// or "data.test".
CsvColumns ReadColumns(const DataSourceConfig& source, const std::string& section, CsvReader* reader);

// ReadColumns() of source.path, and no more of the file.
CsvColumns PeekCsv(const DataSourceConfig& source, const std::string& section);

// The names in the header that the reader stands at. Refuses one that is not UTF-8.
std::vector<std::string> HeaderNames(const CsvReader& reader);

// The names of all columns but the label; none without a header.
std::vector<std::string> FeatureNames(const CsvColumns& columns);

// Refuses a test file, whose header `reader` stands at, that does not have the training file's features in
// the training file's order. Names are compared where both files have them.
void CheckSameFeatures(const CsvColumns& columns, const CsvReader& reader, const CsvColumns& train,
                       const std::string& train_path);

// As a message calls column number `column`: "width", or where it has no name "the label", or its place in a
// row, from 1 as all places in messages: "column 4" of number 3.
std::string ColumnTitle(const CsvColumns& columns, int64_t column);

// What to do about a file that lacks the columns that are needed and whose first record is the reader's: to
// save it with commas where something else separates its fields, else `otherwise`.
std::string ColumnsRemedy(const CsvReader& reader, const std::string& otherwise);

}  // namespace dtrain
