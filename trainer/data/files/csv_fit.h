// How the columns of a training file become features: which categories a column has, and what takes the place
// of a missing value. Fitted on the rows that are trained on, by every task that has the file; the run uses
// what its first worker has found, and checkpoints keep it. Errors are UserErrors with file, line and column.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/files/sources.h"

namespace dtrain {

// The rows behind data.validation that are looked at: the first so many. Categories that come later are as
// rare as those beyond data.max_categories.
constexpr int64_t kFittedRows = 1'000'000;

// Whether columns are more than numbers without gaps: data.ignore, data.categories or data.missing is set.
bool HasColumnForms(const DataConfig& data);

// FittedColumns: what FitColumns() has found.
struct FittedColumns {
  InputForm form;      // features, label_column and, where HasColumnForms(), columns; no classes, no scale
  int64_t inputs = 0;  // features of a row
};

// Reads data.train, and no more than the header if that is enough. `inputs` are those of data.train; a pipe
// is given back, at its begin.
FittedColumns FitColumns(const DataConfig& data, SourceInputs* inputs);

}  // namespace dtrain
