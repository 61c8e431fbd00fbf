// What the data is where the config leaves it open. Every task must come to the same answer, also one that
// has no data files: so these depend on the config alone.
#pragma once

#include <cstdint>

#include "trainer/config/config.h"
#include "trainer/data/digits.h"

namespace dtrain {

constexpr int64_t kLinearInputs = 1;  // of synthetic linear
constexpr int64_t kIdxClasses = 10;   // IDX files hold digits unless model.outputs says otherwise

// Labels of IDX and CSV files must be in [0, this).
inline int64_t ClassesOf(const ModelConfig& model) {
  return model.kind == ModelKind::kLogistic ? 2 : model.outputs.value_or(kIdxClasses);
}

}  // namespace dtrain
