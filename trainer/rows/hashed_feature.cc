#include "trainer/rows/hashed_feature.h"

#include <fmt/format.h>

#include <cmath>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dtrain {

HashedColumn::HashedColumn(std::string_view name, int64_t bits, uint64_t first)
    : seed_(XXH3_64bits(name.data(), name.size())), mask_(LowBits(bits)), first_(first) {}

// Flat: most texts are short, and a call would cost as much as their hash.
[[gnu::flatten]] uint64_t HashedColumn::NumberOf(std::string_view text) const {
  return (XXH3_64bits_withSeed(text.data(), text.size(), seed_) & mask_) + first_;
}

float ScaledNumber(float number, NumberScale scale) {
  return scale == NumberScale::kPlain ? number : std::copysign(std::log1p(std::fabs(number)), number);
}

std::string FeatureNameOf(std::string_view column, std::string_view text) {
  return fmt::format("{}={}", column, text.empty() ? "missing" : text);
}

std::string BeyondInputsRule(uint64_t number, uint64_t inputs, uint64_t mask) {
  return fmt::format(
      "the feature's hash {} must be below model.inputs = {}. Set model.inputs: {}, or smaller "
      "data.hash_bits.",
      number, inputs, mask + 1);
}

}  // namespace dtrain
