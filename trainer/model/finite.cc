#include "trainer/model/finite.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace dtrain {
namespace {

// Without a branch, so that the compiler can make vectors of it.
bool AllFinite(const float* values, int64_t size) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < size; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    found |= static_cast<uint32_t>((bits & kExponent) == kExponent);
  }
  return found == 0;
}

}  // namespace

std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values) {
  for (const Variable& variable : layout.variables) {
    const float* const first = values + variable.offset;
    if (AllFinite(first, variable.size())) continue;
    int64_t i = 0;
    while (std::isfinite(first[i])) ++i;
    const std::string place = variable.cols == 1
                                  ? fmt::format("{}", i)
                                  : fmt::format("{}, {}", i / variable.cols, i % variable.cols);
    return fmt::format("{}[{}] is {}", variable.name, place, first[i]);
  }
  return std::nullopt;
}

}  // namespace dtrain
