// InputForm: the columns and classes of a model: their names, and how features are scaled. Checkpoints hold
// it, so that rows can be read for a model without its training data. Thread: any; plain values and free
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/view.h"
#include "trainer/config/config.h"

namespace dtrain {

// FittedScale: the fitted data.scale, which brings features to similar sizes. It is fitted on training rows
// alone and applied to every set, so that equal values mean the same everywhere; other rows may leave the
// fitted range. The arithmetic is in double and in row order, so that fitting the same rows gives the same
// bits. A feature becomes (value - shift) * factor. A feature that is constant in the fitted rows has factor
// 0 and becomes 0 in every set.
struct FittedScale {
  std::vector<double> shift;
  std::vector<double> factor;
  bool operator==(const FittedScale& other) const { return shift == other.shift && factor == other.factor; }
  bool operator!=(const FittedScale& other) const { return !(*this == other); }
};

// Fits a scale. unit: (x - min) / (max - min). standard: (x - mean) / standard deviation, with the rows as
// the whole population. `kind` must not be kNone.
FittedScale FitScale(FeatureScale kind, gpu::MatrixView<const float> rows);

// Scales `rows` in place; it must have as many columns as were fitted.
void ApplyScale(const FittedScale& scale, gpu::MatrixView<float> rows);

struct InputForm {
  std::vector<std::string> features;  // column names in the model's order; empty: there are none
  std::vector<std::string> classes;   // names, by number; empty: classes have no names
  FittedScale scale;                  // empty: features are not scaled
  int64_t label_column = -1;          // in the training data, from 0; -1: unknown
};

// Returns what is invalid in a form from a file or a peer, or nothing. Readers of rows rely on this check.
std::optional<std::string> FormProblem(const InputForm& form);

// Returns names for a message: "alba, grandis or media"; of more than 20 names only the first ones and the
// number of the others.
std::string ListNames(const std::vector<std::string>& names, const std::string& last_word);
// Returns "3 classes: 0 = alba, 1 = grandis and 2 = media".
std::string ClassNamesText(const std::vector<std::string>& names);
// Returns the name of a feature's column, or its place in a row, counted from 1: "column 4".
std::string FeatureTitle(const InputForm& form, int64_t feature);
// Returns "2 features: height and width". The features must have names.
std::string FeatureNamesText(const InputForm& form);

}  // namespace dtrain
