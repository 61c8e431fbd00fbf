// CsvHeader: whether the first record of a table names the columns or is a row. Runs, eval, predict, init and
// check ask here alone. They know different things: a run is told by the config and refuses a header that is
// likely a row; a model knows its columns' names; a first look has the rows below. Thread: any; free
// functions. Errors are UserErrors with file, line and column.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {

enum class HeaderKind {
  kNames,     // the first line names the columns
  kNone,      // the first line is a row
  kCounting,  // it is 0, 1, 2 .. or 1, 2, 3 .. over columns of whole numbers, and is taken for a row
  kNumbered,  // it is 0, 1, 2 .. or 1, 2, 3 .. over other columns, and is taken for names
};

// A first look: decides from the first records of a table with so many columns, which `readings` say how to
// read. A name that the user has given for the label makes the record that has it a header; empty: none was
// given.
HeaderKind FindHeader(const std::vector<CsvRecord>& records, size_t columns, Decimal decimal,
                      const std::vector<FieldReading>& readings, const std::string& label);

// Whether a row has a field for each of so many columns. Empty ones behind them are none: some programs end
// rows with a delimiter.
inline bool IsWholeRow(const std::vector<CsvField>& fields, size_t columns) {
  if (fields.size() == columns) return true;
  return fields.size() > columns &&
         std::all_of(fields.begin() + static_cast<std::ptrdiff_t>(columns), fields.end(),
                     [](const CsvField& f) { return f.text.empty(); });
}

// Makes a header one of as many names as the rows below it have fields: R and pandas write no name above the
// names of rows, which come first then, and a header may end with a delimiter where rows do not. "# " in
// front of the first name, as numpy writes it, is no part of it. Returns the number of columns, by most rows.
size_t FitHeader(const std::vector<CsvRecord>& below, CsvRecord* header);
// The same for the reader's last record. Waits for the first row.
void FitHeader(CsvReader* reader);

// Whether a record is the header again, as in files that were joined: all fields equal the names. Such a line
// is no row.
bool IsHeaderAgain(const std::vector<CsvField>& fields, const std::vector<std::string>& names);
// Goes behind the record after the header if that has names or units too: texts above numbers or classes.
// Such a line is no row either. The reader is at the header, and columns are read by `readings`.
bool SkipSecondHeader(size_t columns, const std::vector<FieldReading>& readings, CsvReader* reader);
// What is told of both.
constexpr char kHeaderAgain[] = "the header again", kSecondHeader[] = "a second line of names or units";

// A run, whose config says that the reader's first record is a header: throws if it is all numbers, so that a
// row would be lost. Headers of numbers count on: 0, 1, 2. Beside a label with a text name they count from 0
// or 1 and may count or skip the label. `section` is "data.train" or "data.test".
void CheckHeader(const CsvReader& reader, const DataSourceConfig& source, const std::string& section);

// A trained model: whether the reader's first record is a header. A row that is treated as a header is lost.
// So a header must have the label's name, or the names of all columns, or no field that can be a value.
// Names that are numbers differ from a row only by their order. `label`: as in the config; empty: unknown.
bool IsHeaderOf(const CsvReader& reader, const InputForm& form, const std::string& label);
// The same, told that the first record is a row (header: false): it is one unless it has the names.
bool HasNames(const CsvReader& reader, const std::vector<std::string>& names);

// Whether the record without column `label` (-1: the whole record) is the names in their order. Columns of
// one name are then told apart by their order.
bool HasNamesInOrder(const CsvReader& reader, const std::vector<std::string>& names, int64_t label);

// Whether `name` is that of the label, which is a column's name in the config. Training data of images has no
// label column (empty); in a CSV file of images it is called "label".
bool IsLabelName(const std::string& name, const std::string& label);

}  // namespace dtrain
