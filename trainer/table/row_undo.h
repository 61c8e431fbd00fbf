// RowUndo: rows of a table as they were at one moment, of those that have changed since. They lie by piece
// (row_pieces.h), in which a row goes by its number less the piece's first: so those of a piece are found
// together, and given back together.
// Owner: TableSnapshot. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain {

class RowUndo {
 public:
  // `values`: of a row.
  RowUndo(int64_t pieces, int64_t values)
      : values_(static_cast<size_t>(values)), pieces_(static_cast<size_t>(pieces)) {}

  // Whether a row is kept; if not, makes room for its values and sets *kept to it.
  bool Has(int64_t piece, uint32_t at, float** kept);
  // Calls `visit(at, values)` for the rows of a piece.
  template <typename Visit>
  void VisitRows(int64_t piece, Visit&& visit) const {
    const Piece& rows = At(piece);
    for (size_t i = 0; i < rows.at.size(); ++i) visit(rows.at[i], rows.values.data() + i * values_);
  }
  // Forgets the rows of a piece.
  void Drop(int64_t piece);

  // The memory of all rows that are kept.
  size_t bytes() const { return bytes_; }

 private:
  // A hash table with open addressing: places that are 0 or the number of a row, from 1.
  struct Piece {
    std::vector<uint32_t> places;  // a power of two of them, at most three quarters used
    std::vector<uint32_t> at;      // of each row
    std::vector<float> values;     // [rows, values_]
  };
  Piece& At(int64_t piece) { return pieces_[static_cast<size_t>(piece)]; }
  const Piece& At(int64_t piece) const { return pieces_[static_cast<size_t>(piece)]; }
  static size_t BytesOf(const Piece& piece);
  static uint32_t* PlaceOf(Piece* piece, uint32_t at);
  static void Widen(Piece* piece);

  const size_t values_;
  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};

}  // namespace dtrain
