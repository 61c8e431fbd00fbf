// The scale of a run's features, from rows that need not be in memory together. Thread: any; free functions.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Fits a scale, as FitScale() does, to rows [first, first + count) of a set. `kind` must not be kNone. Mean
// and deviation are updated row by row, as Welford has it ("Note on a method for calculating corrected sums
// of squares and products", 1962), so that one pass is enough.
// For sparse rows it scales the features of `numbers` alone.
FittedScale FitScaleOfRows(FeatureScale kind, const DataSet& set, int64_t first, int64_t count,
                           const NumberFeatures& numbers = {});

// Features that say which category it is, or that a value is missing, are 0 and 1: returns `scale` so that
// they stay so.
FittedScale WithoutFlags(FittedScale scale, const std::vector<InputColumn>& columns);

}  // namespace dtrain
