// The weights of classes (data.class_weights). Thread: any; a free function.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/source.h"

namespace dtrain {

// Returns a weight for each class of `train`, by number; empty: all count 1. [balanced] counts the rows
// behind the first `held_out`: a class of them weighs rows / (classes * rows of the class), as scikit-learn
// has it, and one without rows 1. Throws UserError for a class that is not there.
std::vector<float> ClassWeightsOf(const DataConfig& data, const InputForm& form, const DataSet& train,
                                  int64_t held_out);

}  // namespace dtrain
