// How the columns of a training file become features: which categories a column has, and what takes the place
// of a missing value. Fitted on the rows that are trained on, by every task that has the file; the run uses
// what its first worker has found, and checkpoints keep it. Errors are UserErrors with file, line and column.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/input/sources.h"

namespace dtrain {

// Whether columns are more than numbers without gaps, or are not all features: data.ignore, data.categories,
// data.dates, data.weight or data.missing is set.
bool HasColumnForms(const DataConfig& data);

// FittedColumns: what FitColumns() has found.
struct FittedColumns {
  InputForm form;      // features, label_column and, where HasColumnForms(), columns; no classes, no scale
  int64_t inputs = 0;  // features of a row
};

// Reads data.train, and no more than the header if that is enough. Looks at the first data.fit_rows rows that
// are not held out. Where a share is held out, it first reads all files for the number of rows. `inputs` are
// those of data.train; a pipe is given back, at its begin.
FittedColumns FitColumns(const DataConfig& data, SourceInputs* inputs);

// Reads the labels of data.train and returns the number of classes: of names how many differ, of numbers the
// largest and one, and at least 2. What is wrong with the rows is told when they are read.
int64_t CountClasses(const DataConfig& data);

}  // namespace dtrain
