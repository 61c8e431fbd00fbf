#include "trainer/model/finite.h"

#include <fmt/format.h>

#include <cmath>

#include "gpu/ops.h"

namespace dtrain {

std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values) {
  gpu::Stream stream(gpu::Backend::kCpu);
  for (const Variable& variable : layout.variables) {
    const float* const first = values + variable.offset;
    if (!gpu::AnyNonFinite(stream, reinterpret_cast<const std::byte*>(first), variable.size())) continue;
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
