// CsvHeader: whether the first record of a table names the columns or is a row. Runs, eval, predict, init and
// check ask here alone. They know different things: a run is told by the config and refuses a header that is
// likely a row; a model knows its columns' names; a first look has the rows below. Thread: any; free
// functions. Errors are UserErrors with file, line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {

enum class HeaderKind {
  kNames,     // the first line names the columns
  kNone,      // the first line is a row
  kCounting,  // it is 0, 1, 2 .. or 1, 2, 3 .. over columns of whole numbers, and is taken for a row
  kNumbered,  // it is 0, 1, 2 .. or 1, 2, 3 .. over other columns, and is taken for names
};

// A first look: decides from the first records of a table with so many columns.
HeaderKind FindHeader(const std::vector<CsvRecord>& records, size_t columns, Decimal decimal);

// A run, whose config says that the reader's first record is a header: throws if it is all numbers, so that a
// row would be lost. Headers of numbers count on: 0, 1, 2. Beside a label with a text name they count from 0
// or 1 and may count or skip the label. `section` is "data.train" or "data.test".
void CheckHeader(const CsvReader& reader, const DataSourceConfig& source, const std::string& section);

// A trained model: whether the reader's first record is a header. A row that is treated as a header is lost.
// So a header must have the label's name, or the names of all columns, or no number. Names that are numbers
// differ from a row only by their order. `names`: of the model's columns; empty: there are none. `label`: as
// in the config; empty: unknown.
bool IsHeaderOf(const CsvReader& reader, const std::vector<std::string>& names, const std::string& label);

// Whether the record without column `label` (-1: the whole record) is the names in their order. Columns of
// one name are then told apart by their order.
bool HasNamesInOrder(const CsvReader& reader, const std::vector<std::string>& names, int64_t label);

// Whether `name` is that of the label, which is a column's name in the config. Training data of images has no
// label column (empty); in a CSV file of images it is called "label".
bool IsLabelName(const std::string& name, const std::string& label);

}  // namespace dtrain
