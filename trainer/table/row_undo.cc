#include "trainer/table/row_undo.h"

#include <algorithm>

namespace dtrain {

size_t RowUndo::BytesOf(const Piece& piece) {
  return piece.places.capacity() * sizeof(uint32_t) + piece.at.capacity() * sizeof(uint32_t) +
         piece.values.capacity() * sizeof(float);
}

// The place of a row, or the one where it belongs. Multiplicative hashing (Knuth, The Art of Computer
// Programming, 6.4).
uint32_t* RowUndo::PlaceOf(Piece* piece, uint32_t at) {
  const size_t mask = piece->places.size() - 1;
  size_t place = (at * uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
  while (piece->places[place] != 0 && piece->at[piece->places[place] - 1] != at) place = (place + 1) & mask;
  return &piece->places[place];
}

void RowUndo::Widen(Piece* piece) {
  piece->places.assign(std::max<size_t>(16, 2 * piece->places.size()), 0);
  for (size_t i = 0; i < piece->at.size(); ++i) {
    *PlaceOf(piece, piece->at[i]) = static_cast<uint32_t>(i + 1);
  }
}

bool RowUndo::Has(int64_t number, uint32_t at, float** kept) {
  Piece& piece = At(number);
  const size_t before = BytesOf(piece);
  if (piece.places.empty()) Widen(&piece);
  uint32_t* const place = PlaceOf(&piece, at);
  if (*place != 0) return true;
  piece.at.push_back(at);
  piece.values.resize(piece.values.size() + values_);
  *place = static_cast<uint32_t>(piece.at.size());
  if (4 * piece.at.size() > 3 * piece.places.size()) Widen(&piece);
  bytes_ += BytesOf(piece) - before;
  *kept = piece.values.data() + piece.values.size() - values_;
  return false;
}

void RowUndo::Drop(int64_t number) {
  Piece& piece = At(number);
  bytes_ -= BytesOf(piece);
  piece = Piece();
}

}  // namespace dtrain
