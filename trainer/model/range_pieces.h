// Range pieces: all that a ps keeps of its range (the weights, then each slot of the optimizer) as numbered
// pieces of at most one block: first every block of the weights, then every block of the first slot, and so
// on.
#pragma once

#include <cstdint>

#include "trainer/model/blocks.h"

namespace dtrain {

struct RangePiece {
  int64_t slot = 0;  // 0: the weights
  Range elements;    // of the ps's range, whose first element is 0
};

inline int64_t RangePieceCount(Range range, int64_t slots) { return BlockCount(range) * (1 + slots); }

inline RangePiece RangePieceAt(Range range, int64_t piece) {
  const int64_t blocks = BlockCount(range);
  const Range block = BlockOf(range, piece % blocks);
  return {piece / blocks, {block.begin - range.begin, block.end - range.begin}};
}

}  // namespace dtrain
