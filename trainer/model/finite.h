// Whether values of a model are all finite.
#pragma once

#include <optional>
#include <string>

#include "trainer/model/layout.h"

namespace dtrain {

// The first value that is not finite, as "weights/W1[3, 5] is nan"; unset when all are finite.
// `values` has layout.size entries. One pass over memory.
std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values);

}  // namespace dtrain
