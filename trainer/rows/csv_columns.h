// CsvColumns: the columns of a CSV file: their number, their names from the header if there is one, and which
// is the label. In training data all others that are not ignored are inputs, in their order. Thread: any;
// plain values and free functions. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/input/csv_reader.h"
#include "trainer/rows/label_rules.h"

namespace dtrain {

struct CsvColumns {
  std::vector<std::string> names;  // empty without a header
  int64_t count = 0;
  int64_t label = 0;            // column of the label, from 0; -1: there is none
  int64_t weight = -1;          // column of the rows' weights; -1: there is none
  int64_t offset = -1;          // column of what is added to their outputs; -1: there is none
  std::vector<int64_t> inputs;  // the columns that are read, in the order of the model
};

// Returns the columns of data.train; all but the label, data.weight, data.offset and data.ignore are inputs.
// Reads the first record, which stays the reader's current one. Without `labels`, a header may lack what is
// no input but data.offset, and without a header all of it must be there.
CsvColumns ReadTrainColumns(const DataConfig& data, CsvReader* reader, bool labels = true);

// Returns the columns of data.test for a model of the training file with `train`: inputs are found by their
// names where both files have them, else they stand where they do in the training file. Reads the first
// record, which stays the reader's current one.
// `labels`: as for ReadTrainColumns().
CsvColumns ReadTestColumns(const DataConfig& data, const CsvColumns& train, CsvReader* reader,
                           bool labels = true);

// The same columns in a file with `columns` are written as data.missing_values, data.number_format and
// data.dates say: from here on the reader makes them plain. Both functions above call it. Of a
// model of plain numbers `train` has no inputs.
void ReadAsWritten(const DataConfig& data, const CsvColumns& train, const CsvColumns& columns,
                   CsvReader* reader);

// Reads the first record of a later file of a source, which stays the reader's current one. Throws UserError
// unless the file has the columns of the first one, `first` in `first_path`: as many, and with a header of
// the same names. False: it has no record, as the parts of an empty share of a table.
bool CheckNextFile(const CsvColumns& first, const std::string& first_path, CsvReader* reader);

// Returns a column by its name in the header or its number, from 0, for `key` of the config. A text that is
// the name of one column and the number of another is refused.
int64_t FindColumn(const CsvColumns& columns, const std::string& text, const std::string& key,
                   const CsvReader& reader);

// Returns where columns of these names stand in a file whose header the reader is at; of two of one name the
// first. Throws UserError if one is not there: "no column "width"" + `known` + ". Is it "widht"? " +
// `remedy`.
std::vector<int64_t> FindNames(const CsvColumns& columns, const std::vector<std::string>& names,
                               const CsvReader& reader, const std::string& known, const std::string& remedy);

// Returns the inputs that `key` of the config lists. Throws UserError for a column that is none, because it
// is the label, or in data.weight, data.offset or data.ignore.
std::vector<int64_t> FindInputs(const CsvColumns& columns, const std::vector<std::string>& listed,
                                const std::string& key, const CsvReader& reader);

// Returns the names in the header that the reader is at. Throws if one is not UTF-8.
std::vector<std::string> HeaderNames(const CsvReader& reader);

// Returns the names of the inputs; empty without a header.
std::vector<std::string> InputNames(const CsvColumns& columns);

// Returns how a message names a column: "width"; without a name "the label", or the place in a row, counted
// from 1: "column 4" for number 3.
std::string ColumnTitle(const CsvColumns& columns, int64_t column);

}  // namespace dtrain
