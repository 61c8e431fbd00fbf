// Finding a trained model's columns in a table that it is asked about (dtrain eval and predict). Thread: any;
// a free function. Errors are UserErrors with file, line and column.
#pragma once

#include "trainer/input/csv_reader.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

// Reads the first record, which stays the reader's current one. With a header, columns are found by the
// model's names and others are ignored. Without one, or for a model without names, the columns are the
// model's features in order. The label's column may stand among them: at its place in the training data, or,
// for a model of images, under the name "label". A file without a record has no columns.
CsvLayout FindModelColumns(const RowSpec& spec, CsvReader* reader);

}  // namespace dtrain
