// Outputs of a model that no row of the data is of: a slip in model.outputs that no other rule finds.
// Thread: any; free functions.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/data/label_counts.h"

namespace dtrain {

// "model.outputs = 12, and the largest label of the data is 9: ...", for a warning; empty: there are none. Of
// a logistic model: that all labels are of class 0. model.outputs is set.
std::string UnusedOutputsText(const ModelConfig& model, const InputForm& form, const LabelCounts& counts);

}  // namespace dtrain
