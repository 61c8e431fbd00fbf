// InputForm: what the columns and classes of a model are, beside its weights: names, and how features are
// scaled. Checkpoints hold it, so that rows can be read for a model without its training data. Thread: any;
// plain values and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/view.h"
#include "trainer/config/config.h"

namespace dtrain {

// FittedScale: data.scale, by which features are brought to like size. It is fitted on training rows alone
// and applied to every set, so that a test row means what a training row does; its values may leave the
// fitted range. All arithmetic is in double and in the order of the rows: whoever fits the same rows gets the
// same bits. Each feature becomes (value - shift) * factor. A feature that is the same in all fitted rows has
// the factor 0: it becomes 0 in every row of every set.
struct FittedScale {
  std::vector<double> shift;
  std::vector<double> factor;
  bool operator==(const FittedScale& other) const { return shift == other.shift && factor == other.factor; }
  bool operator!=(const FittedScale& other) const { return !(*this == other); }
};

// unit: (x - least) / (greatest - least). standard: (x - mean) / standard deviation, of the rows as a whole
// population. `kind` is not kNone.
FittedScale FitScale(FeatureScale kind, gpu::MatrixView<const float> rows);

// In place; `rows` has as many columns as were fitted.
void ApplyScale(const FittedScale& scale, gpu::MatrixView<float> rows);

struct InputForm {
  std::vector<std::string> features;  // names of the columns in the model's order; empty: they have none
  std::vector<std::string> classes;   // names, by number; empty: classes are numbers
  FittedScale scale;                  // empty: features are taken as they are
  int64_t label_column = -1;          // of the training data, from 0; -1: not known
};

// What a reader of rows relies on, in a form from a file or a peer: what breaks it, or nothing.
std::optional<std::string> FormProblem(const InputForm& form);

// Names in a message: "alba, grandis or media"; of more than 20 only so many, and how many more there are.
std::string ListNames(const std::vector<std::string>& names, const std::string& last_word);
// "3 classes: 0 = alba, 1 = grandis and 2 = media".
std::string ClassNamesText(const std::vector<std::string>& names);
// A feature by the name of its column, or where that has no name by its place in a row, from 1: "column 4".
std::string FeatureTitle(const InputForm& form, int64_t feature);
// "2 features: height and width". They have names.
std::string FeatureNamesText(const InputForm& form);

}  // namespace dtrain
