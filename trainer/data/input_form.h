// InputForm: what the columns and classes of a model are, beside its weights: names, and how features are
// scaled. Checkpoints hold it, so that rows can be read for a model without its training data.
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/scale.h"

namespace dtrain {

struct InputForm {
  std::vector<std::string> features;  // names of the columns in the model's order; empty: they have none
  std::vector<std::string> classes;   // names, by number; empty: classes are numbers
  FittedScale scale;                  // empty: features are taken as they are
  int64_t label_column = -1;          // of the training data, from 0; -1: not known
};

// What a reader of rows relies on, in a form from a file or a peer: what breaks it, or nothing.
std::optional<std::string> FormProblem(const InputForm& form);

}  // namespace dtrain
