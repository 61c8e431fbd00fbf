// RowPieces: the units in which the rows of a ps are written to a checkpoint and sent to its writer. A piece
// is a range of rows, so large that all of them, with their slots, take at most 1 MiB; it has those of them
// that are not as they were in the beginning. Pieces are numbered, and both ends of the wire know their
// ranges.
//
// The bytes of a piece; none if it has no rows; else little-endian:
//   uint32 count      rows that it has
//   uint32 form       0: numbers, 1: bits; in a delta 2: numbers, 3: bits
//   in a delta        uint32, the rows of a group; a bit for each group of the range, padded to 4 bytes: 1,
//   the
//                     piece has all of its rows that are not as they were in the beginning
//   numbers           uint32 of each row: its number less the piece's first, ascending;
//   or bits           a bit for each row of the range, the lowest bit of a byte first, padded to 4 bytes
//   values            float32 [count, width]: the weights, then the same of the next `width` values of each
//   row (the optimizer's slots in turn, optim/model_slots.h) until none are left; the last part may have
//   fewer
// The shorter form is taken. A delta has the groups that have changed since its base: of a group that it
// covers its rows count, and those of the base do not; of all others those of the base count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/channel.h"
#include "trainer/model/table_layout.h"

namespace dtrain {

class RowPieces {
 public:
  // `values`: of a row, with its slots.
  RowPieces(RowRange part, int64_t values);

  int64_t count() const { return static_cast<int64_t>((part_.size() + rows_ - 1) / rows_); }
  RowRange At(int64_t piece) const;
  uint64_t rows() const { return rows_; }  // of a piece; the last may have fewer
  int64_t Of(uint64_t row) const { return static_cast<int64_t>((row - part_.begin) / rows_); }

 private:
  RowRange part_;
  uint64_t rows_ = 1;
};

// The max number of bytes of a piece.
constexpr size_t kMaxRowPieceBytes = size_t{1} << 20;

// Visits the rows of a piece in ascending order.
using VisitRow = std::function<void(uint64_t row, const float* values)>;

// RowPieceWriter: puts rows together to a piece. Thread: one.
class RowPieceWriter {
 public:
  // `width`: values of a row without its slots; `values`: with them. `group_rows`: of a group, if the pieces
  // are those of a delta; else 0.
  RowPieceWriter(int64_t width, int64_t values, int64_t group_rows = 0)
      : width_(width), values_(values), group_rows_(static_cast<uint64_t>(group_rows)) {}
  // A delta covers the group that begins with this row; call it in ascending order.
  void Cover(uint64_t first_row) { groups_.push_back(first_row); }
  // Adds a row; call it in ascending order. `values`: with its slots.
  void Add(uint64_t row, const float* values) {
    if (count_ == rows_.size()) Grow();
    rows_[count_] = row;
    float* const to = row_values_.data() + count_++ * static_cast<size_t>(values_);
    values_ == 1 ? void(*to = *values) : void(std::copy_n(values, values_, to));
  }
  // The bytes of the piece of these rows, at most; not of a delta.
  size_t MaxBytes() const {
    return 2 * sizeof(uint32_t) + count_ * (sizeof(uint32_t) + static_cast<size_t>(values_) * sizeof(float));
  }
  // Writes the piece of these rows, which all lie in `range`, and begins a new one. `bytes` has room for
  // kMaxRowPieceBytes, or for MaxBytes(). Returns how many it wrote.
  size_t Finish(RowRange range, std::byte* bytes);

 private:
  void Grow();

  const int64_t width_;
  const int64_t values_;
  const uint64_t group_rows_;
  std::vector<uint64_t> groups_;
  size_t count_ = 0;  // rows so far; behind them is room
  std::vector<uint64_t> rows_;
  std::vector<float> row_values_;  // [rows, values]
};

// RowCover: the groups of rows that a piece of a delta covers.
struct RowCover {
  uint64_t first = 0;  // row of the piece's range
  uint64_t group_rows = 1;
  std::vector<bool> groups;  // empty: none

  bool Has(uint64_t row) const { return !groups.empty() && groups[(row - first) / group_rows]; }
};

// Reads the bytes of a piece, any bytes. Calls `visit` for the rows in [range.begin, range.end), of which the
// piece has those of `piece`; `values`: of a row with its slots. `cover`: for a piece of a delta, what it
// covers; null: it is none. Returns what is wrong with the bytes; empty: nothing, and all rows are visited.
// Nothing is visited of a piece that is wrong.
std::string ReadRowPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values, RowRange range,
                         const VisitRow& visit, RowCover* cover = nullptr);

// Visits the rows of a delta and of its base together in ascending order, as ReadRowPiece() does for those of
// one of them. `delta`, `base`: the bytes of the same piece in each.
std::string ReadDeltaPiece(net::TensorView delta, net::TensorView base, RowRange piece, int64_t width,
                           int64_t values, RowRange range, const VisitRow& visit);

}  // namespace dtrain
