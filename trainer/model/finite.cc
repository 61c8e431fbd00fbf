#include "trainer/model/finite.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain {
namespace {

// "3", or "3, 5" where there are several columns.
std::string PlaceText(uint64_t row, int64_t column, int64_t columns) {
  return columns == 1 ? fmt::format("{}", row) : fmt::format("{}, {}", row, column);
}

// The sign of a NaN has no meaning.
std::string NumberText(float value) { return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value); }

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
  return fmt::format("{}[{}] is {}", variable.name,
                     PlaceText(static_cast<uint64_t>(i / variable.cols), i % variable.cols, variable.cols),
                     NumberText(value));
}

// The same of a value in a row of a table: "weights/W1[3]", "factors/V1[3, 0]" or "biases/b1[0]".
std::string ValueText(const TableLayout& table, uint64_t key, int64_t column, float value,
                      const char* factors) {
  const int64_t outputs = table.width() - table.factors();
  const uint64_t feature = table.FeatureOf(key);
  const auto text = [&](const char* name, const std::string& place) {
    return fmt::format("{}[{}] is {}", name, place, NumberText(value));
  };
  if (key == table.bias_row()) return text(kTableBiases, fmt::format("{}", column));
  if (column < outputs) return text(kTableWeights, PlaceText(feature, column, outputs));
  return text(factors, fmt::format("{}, {}", feature, column - outputs));
}

// Returns the index of the value of the largest magnitude.
int64_t IndexOfLargest(const float* values, int64_t count) {
  int64_t largest = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (std::fabs(values[i]) > std::fabs(values[largest])) largest = i;
  }
  return largest;
}

// Calls `text(index, value)` for the first of `count` values that is not finite.
template <typename Text>
std::optional<std::string> FirstOf(const std::byte* values, int64_t count, Text&& text) {
  gpu::Stream stream;
  if (!gpu::AnyNonFinite(stream, values, count)) return std::nullopt;
  for (int64_t i = 0;; ++i) {
    float value = 0;
    std::memcpy(&value, values + static_cast<size_t>(i) * sizeof value, sizeof value);
    if (!std::isfinite(value)) return text(i, value);
  }
}

}  // namespace

std::optional<std::string> FirstNonFinite(const Layout& layout, Range range, const std::byte* values) {
  return FirstOf(values, range.size(),
                 [&](int64_t i, float value) { return ValueText(layout, range.begin + i, value); });
}

std::optional<std::string> FirstNonFinite(const TableLayout& table, gpu::Span<const uint64_t> keys,
                                          const std::byte* values, const char* factors) {
  return FirstOf(values, keys.size * table.width(), [&](int64_t i, float value) {
    return ValueText(table, keys[i / table.width()], i % table.width(), value, factors);
  });
}

std::optional<std::string> FirstNonFinite(const Layout& layout, const float* values) {
  return FirstNonFinite(layout, {0, layout.size}, reinterpret_cast<const std::byte*>(values));
}

NamedValue LargestValue(const Layout& layout, const float* values) {
  const int64_t largest = IndexOfLargest(values, layout.size);
  return {ValueText(layout, largest, values[largest]), std::fabs(values[largest])};
}

NamedValue LargestValue(const TableLayout& table, gpu::Span<const uint64_t> keys, const float* values,
                        const char* factors) {
  const int64_t largest = IndexOfLargest(values, keys.size * table.width());
  return {ValueText(table, keys[largest / table.width()], largest % table.width(), values[largest], factors),
          std::fabs(values[largest])};
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
