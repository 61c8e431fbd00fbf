// InputForm: what the columns and classes of a model are, beside its weights: names, and how features are
// scaled. Checkpoints hold it, so that rows can be read for a model without its training data.
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/scale.h"

namespace dtrain {

struct InputForm {
  std::vector<std::string> features;  // names of the columns in the model's order; empty: they have none
  std::vector<std::string> classes;   // names, by number; empty: classes are numbers
  FittedScale scale;                  // empty: features are taken as they are
};

}  // namespace dtrain
