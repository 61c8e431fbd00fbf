// TableLayout: where the rows of a sparse model lie. The model has a row of `width` values for each feature
// and one for the bias. The rows are numbered anew, [0, rows()), and each ps owns a contiguous range of these
// numbers, in blocks: so the part of a ps in a sorted list of rows is one run of it. Features that lie next
// to each other are often as frequent as each other, as in files that number features by frequency; the new
// numbers spread them over all ps.
// A hash table has rows for any 64-bit keys as features, and its numbers are a bijection of 64 bits. They
// fall into kHashRanges ranges by their first bits, and a block has whole ranges: what a range does depends
// on its own keys alone, however many ps there are. Thread: any; a plain value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain {

// Rows of a table [begin, end).
struct RowRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};

// What reports and checkpoints call the rows.
constexpr char kTableName[] = "table";

class TableLayout {
 public:
  // Rows of a block can be numbered by 32 bits.
  static constexpr int kMaxBlockBits = 32;
  static constexpr int64_t kMaxFeatures = int64_t{1} << 40;
  // In place of the number of features: there are as many as keys (a hash table).
  static constexpr int64_t kHashed = -1;
  static constexpr int kHashRangeBits = 12;
  static constexpr int64_t kHashRanges = int64_t{1} << kHashRangeBits;
  // A row with the optimizer's slots fits into a piece of a checkpoint (table/row_pieces.h).
  static constexpr int64_t kMaxWidth = 1 << 14;

  // A table of `features` rows, or kHashed, and one for the bias, over `ps` ps. `factors`: so many of the
  // values of a row are those of a factorization machine, behind its weight; 0: all are weights.
  // `min_blocks`: of each ps.
  TableLayout(int64_t features, int64_t width, int64_t ps, int64_t factors = 0, int64_t min_blocks = 1);

  int64_t features() const { return features_; }
  bool hashed() const { return features_ == kHashed; }
  // What the number of a row in its block takes, as it is.
  size_t key_bytes() const { return hashed() ? sizeof(uint64_t) : sizeof(uint32_t); }
  int64_t width() const { return width_; }      // values of a row
  int64_t factors() const { return factors_; }  // of which so many, the last ones, are factors
  // Those of the features, some that belong to none (at most a quarter, and hardly any of large tables or
  // where features are a power of two), and last the bias.
  uint64_t rows() const { return bias_row() + 1; }

  // The row of a feature, or of the bias, which is number features(), of a hash table 2^64 - 1. The two are
  // inverse to each other, but for two keys of a hash table that share the row of a third.
  // Units of features go round many stripes of the rows. The stripes are taken in an order in which
  // neighbours are far apart: by multiples of a number near the golden ratio (Knuth, The Art of Computer
  // Programming, 6.4).
  uint64_t RowOf(uint64_t feature) const {
    if (feature == static_cast<uint64_t>(features_)) return bias_row();
    return hashed() ? RowOfKey(feature) : RowOfNumber(feature);
  }
  // The same for a key of a hash table, and for a feature of another one.
  uint64_t RowOfKey(uint64_t key) const {
    // The finalizer of MurmurHash3 with the constants of Stafford's Mix13.
    uint64_t mixed = (key ^ key >> 30) * kMixFirst;
    mixed = (mixed ^ mixed >> 27) * kMixSecond;
    return std::min(mixed ^ mixed >> 31, bias_row() - 1);
  }
  uint64_t RowOfNumber(uint64_t feature) const {
    const uint64_t unit = feature >> unit_bits_, stripe = unit * factor_ & stripe_mask_;
    return (stripe * stripe_units_ + (unit >> stripe_bits_)) << unit_bits_ | (feature & unit_mask_);
  }
  uint64_t FeatureOf(uint64_t row) const {
    if (row == bias_row()) return static_cast<uint64_t>(features_);
    if (hashed()) return KeyOf(row);
    const uint64_t unit = row >> unit_bits_, turn = unit / stripe_units_ * inverse_ & stripe_mask_;
    const uint64_t number =
        ((unit % stripe_units_) << stripe_bits_ | turn) << unit_bits_ | (row & unit_mask_);
    return number + (number < static_cast<uint64_t>(features_) ? 0 : 1);  // more than features(): of none
  }
  uint64_t bias_row() const { return bias_row_; }
  // Whether a row belongs to a feature or is the bias.
  bool IsUsed(uint64_t row) const { return FeatureOf(row) <= static_cast<uint64_t>(features_); }

  int64_t blocks_of_ps() const { return blocks_of_ps_; }  // the same for each
  RowRange BlockOf(int64_t ps, int64_t block) const { return RangeOf(ps * blocks_of_ps_ + block); }
  RowRange PartOf(int64_t ps) const { return {BlockOf(ps, 0).begin, BlockOf(ps, blocks_of_ps_ - 1).end}; }
  // All blocks, those of ps 0 first.
  int64_t block_count() const { return ps_ * blocks_of_ps_; }
  RowRange RangeOf(int64_t block) const { return {Begin(block), Begin(block + 1)}; }

 private:
  static constexpr uint64_t kMixFirst = 0xbf58476d1ce4e5b9;
  static constexpr uint64_t kMixSecond = 0x94d049bb133111eb;

  void PlaceNumbers();
  static uint64_t KeyOf(uint64_t row);
  uint64_t Begin(int64_t block) const;

  int64_t features_;
  int64_t width_;
  int64_t ps_;
  int64_t factors_;
  int64_t blocks_of_ps_ = 1;
  uint64_t bias_row_ = ~uint64_t{0} - 1;
  int unit_bits_ = 0;  // so many low bits of a number stay: neighbours share a line of the cache
  uint64_t unit_mask_ = 0;
  int stripe_bits_ = 0;
  uint64_t stripe_mask_ = 0;
  uint64_t stripe_units_ = 1;  // units of a stripe
  uint64_t factor_ = 1;        // odd
  uint64_t inverse_ = 1;       // factor_ * inverse_ = 1 modulo 2^64
};

}  // namespace dtrain
