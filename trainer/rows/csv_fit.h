// How the columns of a training file become features: which categories a column has, and what takes the place
// of a missing value. Fitted on the rows that are trained on, by every task that has the file; the run uses
// what its first worker has found, and checkpoints keep it. Errors are UserErrors with file, line and column.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/input/sources.h"

namespace dtrain {

// Whether columns are more than plain numbers without gaps, or are not all features: data.ignore,
// data.categories, data.dates, data.weight, data.offset, data.missing_values, data.number_format or
// data.missing is set.
bool HasColumnForms(const DataConfig& data);

// FittedColumns: what FitColumns() has found.
struct FittedColumns {
  // Features, label_column and, where HasColumnForms(), columns; as classes the labels that are counted, if
  // they are numbers that do not count from 0 (ClassCounter); a
  // scale only if it was saved.
  InputForm form;
  int64_t inputs = 0;   // features of a row
  int64_t classes = 0;  // where they are counted (ClassCounter)
};

// Reads data.train once, and no more than is needed: of the header alone the columns are known where all are
// numbers. Looks at the first data.fit_rows rows that are not held out; all rows are read where a share is
// held out, and a second time if what the fit needs of them is more than SourceInputs::kMaxHeadBytes. Counts
// the classes of all rows if that is asked for. What is wrong with the rows is told when they are parsed.
// `inputs` are those of data.train; a pipe is given back, at its begin. `saved`: a form that was fitted
// before, such as that of a checkpoint, whatever it was fitted to: if it is of columns of these names and
// kinds, it is the result, with its categories, fill values and scale; null: there is none.
FittedColumns FitColumns(const DataConfig& data, SourceInputs* inputs, bool counts_classes = false,
                         const InputForm* saved = nullptr);

}  // namespace dtrain
