// data.scale: features brought to like size. A scale is fitted on training rows alone and applied to every
// set, so that a test row means what a training row does; its values may leave the fitted range.
// All arithmetic is in double and in the order of the rows: who fits the same rows gets the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/view.h"
#include "trainer/config/config.h"

namespace dtrain {

// Of each feature: scaled = (value - shift) * factor. A feature that is the same in all fitted rows has the
// factor 0: it becomes 0 in every row of every set.
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

}  // namespace dtrain
