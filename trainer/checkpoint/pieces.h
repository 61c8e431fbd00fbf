// Pieces: the unit in which a ps's range, weights and optimizer slots, is written to its shard file and sent
// to who writes it. A function of the layout, so that both ends of the wire know them by number.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/layout.h"

namespace dtrain {

// Elements of one variable, within one block (trainer/model/blocks.h) of the range of one ps.
struct Piece {
  int variable = 0;   // index into Layout::variables
  int slot = 0;       // 0: weights; then the optimizer's slots, from 1
  int64_t first = 0;  // of the variable's elements, row by row
  int64_t count = 0;
  int64_t begin = 0;  // element of the ps's range
};

// The pieces of one ps's shard file in the order of the file: block by block its weights, then each of the
// `slots` optimizer slots. Empty where the range is.
std::vector<Piece> PiecesOf(const Layout& layout, int ps, int slots);

}  // namespace dtrain
