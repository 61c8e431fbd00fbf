// RowPieces: the units in which the rows of a ps are written to a checkpoint and sent to its writer. A piece
// is a range of rows, so large that all of them, with their slots, take at most 1 MiB; it has those of them
// that are not as they were in the beginning. Pieces are numbered, and both ends of the wire know their
// ranges.
//
// The bytes of a piece; none if it has no rows; else little-endian:
//   uint32 count      rows that it has
//   uint32 form       0: numbers, 1: bits
//   numbers           uint32 of each row: its number less the piece's first, ascending;
//   or bits           a bit for each row of the range, the lowest bit of a byte first, padded to 4 bytes
//   values            float32 [count, width]: the weights, then each of the optimizer's slots in turn
// The shorter form is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/codec.h"
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
  // `width`: values of a row without its slots; `values`: with them.
  RowPieceWriter(int64_t width, int64_t values) : width_(width), values_(values) {}
  // Adds a row; call it in ascending order. `values`: [1 + slots, width].
  void Add(uint64_t row, const float* values);
  // Writes the piece of these rows, which all lie in `range`, and begins a new one. `bytes` has room for
  // kMaxRowPieceBytes. Returns how many it wrote.
  size_t Finish(RowRange range, std::byte* bytes);

 private:
  const int64_t width_;
  const int64_t values_;
  std::vector<uint64_t> rows_;
  std::vector<float> row_values_;  // [rows, values]
};

// Reads the bytes of a piece, any bytes. Calls `visit` for the rows in [range.begin, range.end), of which the
// piece has those of `piece`; `values`: of a row with its slots. Returns what is wrong with them; empty:
// nothing, and all rows are visited. Nothing is visited of a piece that is wrong.
std::string ReadRowPiece(net::TensorView bytes, RowRange piece, int64_t width, int64_t values, RowRange range,
                         const VisitRow& visit);

}  // namespace dtrain
