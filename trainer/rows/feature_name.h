// What a message calls a feature.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/user_text.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

// As the training data named it; empty: it has no name.
inline std::string FeatureName(const RowSpec& spec, int64_t feature) {
  const std::vector<std::string>& names = spec.form.features;
  return names.empty() ? "" : Shown(names[static_cast<size_t>(feature)]);
}

}  // namespace dtrain
