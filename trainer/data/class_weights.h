// The weights of classes (data.class_weights). Thread: any; free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/source.h"

namespace dtrain {

// Returns the rows of each class, by number, from row `first` on.
std::vector<int64_t> CountClasses(const DataSet& train, int64_t first);

// Returns a weight for each of so many classes, by number; empty: all count 1. [balanced] calls `count` for
// the rows of each: a class weighs rows / (classes * rows of the class), as scikit-learn has it, and one
// without rows 1. Throws UserError for a class that is not there.
std::vector<float> ClassWeightsOf(const DataConfig& data, const InputForm& form, int64_t classes,
                                  const std::function<std::vector<int64_t>()>& count);

}  // namespace dtrain
