// Whether values of a model are all finite, which of them is not, and the failure that ends a run then.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/error.h"
#include "trainer/model/layout.h"

namespace dtrain {

// The first value that is not finite, as "weights/W1[3, 5] is nan"; unset when all are finite.
// `values`: elements [range.begin, range.end) of the flat vector, at any address. One pass over memory.
std::optional<std::string> FirstNonFinite(const Layout& layout, Range range, const std::byte* values);
// The same of all layout.size entries.
std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values);

// The value of the largest magnitude, as "weights/W1[3, 5] is -1.5e+30". `values` has layout.size entries, at
// least one, all finite.
std::string LargestValue(const Layout& layout, const float* values);

// Ends the run with exit code 3. `what` says which task found which value, and when.
Failure Diverged(const std::string& what);

}  // namespace dtrain
