// A table with columns that have too many texts for a feature each (data.hash): its rows are sparse. A
// feature of such a column is the hash of the column's name and the text (hashed_feature.h) with value 1, and
// a missing value is a text of its own. Of any other column it is the hash of the name, with the number as
// value; with data.by_column it is one behind all hashes, scaled as data.numbers says. A column without a
// name is named by its number, from 0. Thread: any; a free function. Errors are UserErrors with file, line
// and column.
#pragma once

#include <memory>
#include <string>

#include "trainer/config/config.h"
#include "trainer/rows/csv_table.h"

namespace dtrain {

// Opens such a table. `columns` are those of this file and `train` those of data.train, by which data.hash
// counts; their inputs belong together. The others: as for LayoutOf() and CsvFile.
std::unique_ptr<RowFile> OpenHashedCsv(const DataConfig& data, const std::string& section, bool header,
                                       std::unique_ptr<CsvReader> reader, const CsvColumns& columns,
                                       const CsvColumns& train, SkippedRows* skipped);

}  // namespace dtrain
