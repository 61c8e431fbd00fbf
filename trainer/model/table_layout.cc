#include "trainer/model/table_layout.h"

#include <algorithm>

#include "base/check.h"

namespace dtrain {
namespace {

int BitsFor(uint64_t count) {
  int bits = 0;
  while ((uint64_t{1} << bits) < count) ++bits;
  return bits;
}

// Returns the x with factor * x = 1 modulo 2^64, for an odd factor, by Newton's iteration, which doubles the
// number of right bits.
uint64_t InverseOf(uint64_t factor) {
  uint64_t inverse = factor;  // right in three bits
  for (int i = 0; i < 5; ++i) inverse *= 2 - factor * inverse;
  return inverse;
}

}  // namespace

TableLayout::TableLayout(int64_t features, int64_t width, int64_t ps, int64_t factors, int64_t min_blocks)
    : features_(features), width_(width), ps_(ps), factors_(factors) {
  DT_CHECK(width > factors && ps >= 1, width, ps);
  if (!hashed()) {
    PlaceNumbers();
    const auto in_block = uint64_t{1} << kMaxBlockBits;
    const uint64_t of_ps = (rows() + static_cast<uint64_t>(ps) - 1) / static_cast<uint64_t>(ps);
    blocks_of_ps_ = std::max(min_blocks, static_cast<int64_t>((of_ps + in_block - 1) / in_block));
  } else {
    DT_CHECK(ps <= kHashRanges, ps);
    blocks_of_ps_ = std::min(min_blocks, kHashRanges / ps);
  }
}

void TableLayout::PlaceNumbers() {
  DT_CHECK(features_ >= 1 && features_ < kMaxFeatures, features_);
  constexpr int kUnitBits = 4;
  constexpr int kMinUnitsBits = 10;    // small tables are spread row by row
  constexpr int kStripeUnitsBits = 3;  // a stripe has some units, so that few are of no feature
  constexpr int kMaxStripeBits = 12;   // enough for the frequent features to be even on hundreds of ps
  const auto count = static_cast<uint64_t>(features_);
  unit_bits_ = std::clamp(BitsFor(count) - kMinUnitsBits, 0, kUnitBits);
  unit_mask_ = (uint64_t{1} << unit_bits_) - 1;
  const uint64_t units = (count + unit_mask_) >> unit_bits_;
  stripe_bits_ = std::clamp(BitsFor(units) - kStripeUnitsBits, 0, kMaxStripeBits);
  stripe_mask_ = (uint64_t{1} << stripe_bits_) - 1;
  stripe_units_ = (units + stripe_mask_) >> stripe_bits_;
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio
  factor_ = stripe_bits_ == 0 ? 1 : kGolden >> (64 - stripe_bits_) | 1;
  inverse_ = InverseOf(factor_);
  bias_row_ = stripe_units_ << (stripe_bits_ + unit_bits_);
}

// Undoes the steps of RowOfKey() from the last to the first.
uint64_t TableLayout::KeyOf(uint64_t row) {
  const auto unshift = [](uint64_t value, int bits) {
    uint64_t result = value;
    for (int shift = bits; shift < 64; shift += bits) result = value ^ result >> bits;
    return result;
  };
  const uint64_t second = unshift(row, 31) * InverseOf(kMixSecond);
  return unshift(unshift(second, 27) * InverseOf(kMixFirst), 30);
}

// Somewhat more than 2^40 rows times 2^23 blocks fit into 64 bits.
uint64_t TableLayout::Begin(int64_t block) const {
  if (hashed()) {
    const auto range = static_cast<uint64_t>(kHashRanges * block / block_count());
    return block == block_count() ? rows() : range << (64 - kHashRangeBits);
  }
  return rows() * static_cast<uint64_t>(block) / static_cast<uint64_t>(block_count());
}

}  // namespace dtrain
