// TableLayout: where the rows of a sparse model lie. The model has a row of `width` values for each feature
// and one for the bias. The rows are numbered anew, [0, rows()), and each ps owns a contiguous range of these
// numbers, in blocks: so the part of a ps in a sorted list of rows is one run of it. Features that lie next
// to each other are often as frequent as each other, as in files that number features by frequency; the new
// numbers spread them over all ps. Thread: any; a plain value.
#pragma once

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
  // A row with the optimizer's slots fits into a piece of a checkpoint (table/row_pieces.h).
  static constexpr int64_t kMaxWidth = 1 << 14;

  // A table of `features` rows and one for the bias, over `ps` ps. `factors`: so many of the values of a row
  // are those of a factorization machine, behind its weight; 0: all are weights. `min_blocks`: of each ps.
  TableLayout(int64_t features, int64_t width, int64_t ps, int64_t factors = 0, int64_t min_blocks = 1);

  int64_t features() const { return features_; }
  int64_t width() const { return width_; }                // values of a row
  int64_t factors() const { return factors_; }            // of which so many, the last ones, are factors
  uint64_t rows() const { return uint64_t{1} << bits_; }  // of which some belong to no feature

  // The row of a feature, or of the bias, which is number features(). The two are inverse to each other: a
  // multiplication by an odd number modulo a power of two is a permutation, and one near the golden ratio
  // keeps neighbours far apart (Knuth, The Art of Computer Programming, 6.4).
  uint64_t RowOf(uint64_t feature) const { return Permute(feature, factor_); }
  uint64_t FeatureOf(uint64_t row) const { return Permute(row, inverse_); }
  uint64_t bias_row() const { return RowOf(static_cast<uint64_t>(features_)); }
  // Whether a row belongs to a feature or is the bias.
  bool IsUsed(uint64_t row) const { return FeatureOf(row) <= static_cast<uint64_t>(features_); }

  int64_t blocks_of_ps() const { return blocks_of_ps_; }  // the same for each
  RowRange BlockOf(int64_t ps, int64_t block) const { return RangeOf(ps * blocks_of_ps_ + block); }
  RowRange PartOf(int64_t ps) const { return {BlockOf(ps, 0).begin, BlockOf(ps, blocks_of_ps_ - 1).end}; }
  // All blocks, those of ps 0 first.
  int64_t block_count() const { return ps_ * blocks_of_ps_; }
  RowRange RangeOf(int64_t block) const { return {Begin(block), Begin(block + 1)}; }

 private:
  uint64_t Permute(uint64_t number, uint64_t factor) const {
    const uint64_t low = number & ((uint64_t{1} << unit_bits_) - 1);
    return (((number >> unit_bits_) * factor) & unit_mask_) << unit_bits_ | low;
  }
  uint64_t Begin(int64_t block) const;

  int64_t features_;
  int64_t width_;
  int64_t ps_;
  int64_t factors_;
  int64_t blocks_of_ps_ = 1;
  int bits_ = 0;
  int unit_bits_ = 0;  // so many low bits of a number stay: neighbours share a line of the cache
  uint64_t unit_mask_ = 0;
  uint64_t factor_ = 1;
  uint64_t inverse_ = 1;
};

}  // namespace dtrain
