// Checks whether all values of a model are finite, and the failure of a run in which they are not. Thread:
// any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "gpu/view.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Returns the first value that is not finite, as "weights/W1[3, 5] is nan"; unset if all are finite. `values`
// are elements [range.begin, range.end) of the flat vector, at any address. One pass over memory.
std::optional<std::string> FirstNonFinite(const Layout& layout, Range range, const std::byte* values);
// The same for the weights [keys, width] of rows of a table, as "weights/W1[3] is nan". `factors`: what
// theirs are called (Layout::factors_name).
std::optional<std::string> FirstNonFinite(const TableLayout& table, gpu::Span<const uint64_t> keys,
                                          const std::byte* values, const char* factors);
// The same for all layout.size elements.
std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values);

// A value of a model, as "weights/W1[3, 5] is -1.5e+30".
struct NamedValue {
  std::string text;
  float magnitude = 0;
};

// Returns the value of the largest magnitude. `values` has layout.size elements, at least one, all finite.
NamedValue LargestValue(const Layout& layout, const float* values);
// The same of the weights [keys, width] of rows of a table.
NamedValue LargestValue(const TableLayout& table, gpu::Span<const uint64_t> keys, const float* values,
                        const char* factors);

// Returns the failure that ends the run with exit code 3. `what` says which task found which value, and when.
// `large_feature`: what features are too large without data.scale (LargeFeatureText()), which is then the
// first thing to try; empty: nothing is known.
Failure Diverged(const std::string& what, const std::string& large_feature = "");

}  // namespace dtrain
