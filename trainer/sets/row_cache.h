// The cache of parsed rows (data.cache: file): one file under data.cache_dir that holds the rows of
// data.train, their labels and weights, mapped into memory: all features of a row as float32, or of a sparse
// row those that are not 0. Thread: any; a free function.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Takes the cache of these data, or makes it. `how` and `inputs`: as in RowContext. Throws UserError for the
// data's faults, and for a directory that cannot be written or is full; a cache that is not whole is never
// left under its name.
DataSet CachedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                  int64_t inputs);

}  // namespace dtrain
