#include "trainer/data/input_form.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace dtrain {

std::optional<std::string> FormProblem(const InputForm& form) {
  const FittedScale& scale = form.scale;
  const size_t scaled = scale.shift.size();
  if (scale.factor.size() != scaled) {
    return fmt::format("{} shifts and {} factors", scaled, scale.factor.size());
  }
  if (scaled > 0 && !form.features.empty() && form.features.size() != scaled) {
    return fmt::format("{} features have names and {} a scale", form.features.size(), scaled);
  }
  if (form.label_column < -1) return fmt::format("its label is column {}", form.label_column);
  const auto finite = [](double value) { return std::isfinite(value); };
  for (const std::vector<double>* values : {&scale.shift, &scale.factor}) {
    if (!std::all_of(values->begin(), values->end(), finite)) return "a scale is not finite";
  }
  return std::nullopt;
}

}  // namespace dtrain
