#include "trainer/shard/range_update.h"

#include <fmt/core.h>

#include <algorithm>

#include "trainer/config/train_config.h"

namespace dtrain {
namespace {

// Returns the part of `update` for `elements`, which are some of its own.
RangeUpdate PartOf(const RangeUpdate& update, Range elements) {
  const int64_t skipped = elements.begin - update.elements.begin;
  RangeUpdate part = update;
  part.elements = elements;
  part.weights += skipped;
  part.updated += skipped;
  part.gradient += skipped * static_cast<int64_t>(sizeof(float));
  return part;
}

void ApplyWhole(const RangeUpdate& update, int64_t range_begin, Optimizer* optimizer) {
  optimizer->Apply(update.step, update.elements.begin - range_begin, update.weights, update.updated,
                   update.gradient, update.elements.size());
}

}  // namespace

void ApplyUpdate(const RangeUpdate& update, const OptimizerConfig& config, const Layout& layout,
                 int64_t range_begin, Optimizer* optimizer) {
  if (config.decay_biases) return ApplyWhole(update, range_begin, optimizer);
  for (size_t i = 0; i < layout.variables.size(); ++i) {
    const Variable& variable = layout.variables[i];
    const bool last = i + 1 == layout.variables.size();
    // With what lies between it and the next one: `updated` may be a buffer that was never written.
    const int64_t end = last ? layout.size : layout.variables[i + 1].offset;
    const Range elements{std::max(update.elements.begin, variable.offset),
                         std::min(update.elements.end, end)};
    if (elements.begin >= elements.end) continue;
    RangeUpdate part = PartOf(update, elements);
    part.step.decay = !variable.bias;
    ApplyWhole(part, range_begin, optimizer);
  }
}

std::string WrongBytes(net::TensorView piece, Range elements) {
  const auto bytes = static_cast<size_t>(elements.size()) * sizeof(float);
  return piece.size == bytes ? "" : fmt::format("it has {} bytes, not {}", piece.size, bytes);
}

}  // namespace dtrain
