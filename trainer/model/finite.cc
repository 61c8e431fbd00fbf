#include "trainer/model/finite.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain {
namespace {

// Returns element `index` of the flat vector with the variable's name and indices.
std::string ValueText(const Layout& layout, int64_t index, float value) {
  const auto holds = [index](const Variable& variable) {
    return index >= variable.offset && index < variable.offset + variable.size();
  };
  size_t at = 0;
  while (at < layout.variables.size() && !holds(layout.variables[at])) ++at;
  DT_CHECK(at < layout.variables.size(), index);
  const Variable& variable = layout.variables[at];
  const int64_t i = index - variable.offset;
  const std::string place =
      variable.cols == 1 ? fmt::format("{}", i) : fmt::format("{}, {}", i / variable.cols, i % variable.cols);
  // The sign of a NaN has no meaning.
  const std::string text = std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
  return fmt::format("{}[{}] is {}", variable.name, place, text);
}

}  // namespace

std::optional<std::string> FirstNonFinite(const Layout& layout, Range range, const std::byte* values) {
  gpu::Stream stream;
  if (!gpu::AnyNonFinite(stream, values, range.size())) return std::nullopt;
  for (int64_t i = 0;; ++i) {
    float value = 0;
    std::memcpy(&value, values + static_cast<size_t>(i) * sizeof value, sizeof value);
    if (!std::isfinite(value)) return ValueText(layout, range.begin + i, value);
  }
}

std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values) {
  return FirstNonFinite(layout, {0, layout.size}, reinterpret_cast<const std::byte*>(values));
}

std::string LargestValue(const Layout& layout, const float* values) {
  int64_t largest = 0;
  for (int64_t i = 1; i < layout.size; ++i) {
    if (std::fabs(values[i]) > std::fabs(values[largest])) largest = i;
  }
  return ValueText(layout, largest, values[largest]);
}

Failure Diverged(const std::string& what, const std::string& large_feature) {
  const std::string advice =
      large_feature.empty()
          ? "Try a smaller train.optimizer.learning_rate, or check the data."
          : fmt::format("{}. Try data.scale: standard first, then a smaller train.optimizer.learning_rate.",
                        large_feature);
  return Failure(ExitCode::kDiverged, what + ": the run has diverged. " + advice);
}

}  // namespace dtrain
