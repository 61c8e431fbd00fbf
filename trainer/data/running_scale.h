// The scale of rows that are not in memory together. Thread: any; a free function.
#pragma once

#include <cstdint>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/source.h"

namespace dtrain {

// Fits a scale, as FitScale() does, to rows [first, first + count) of a set. `kind` must not be kNone. Mean
// and deviation are updated row by row, as Welford has it ("Note on a method for calculating corrected sums
// of squares and products", 1962), so that one pass is enough.
FittedScale FitScaleOfRows(FeatureScale kind, const DataSet& set, int64_t first, int64_t count);

}  // namespace dtrain
