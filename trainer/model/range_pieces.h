// Range pieces: all that a ps keeps of its range (the weights, then each slot of the optimizer) as numbered
// pieces of at most one block: the weights of the first block, each slot of it, then the next block. So
// whoever reads them in order is done with a block at once, and no update has to copy it any more.
#pragma once

#include <cstdint>

#include "trainer/model/blocks.h"

namespace dtrain {

struct RangePiece {
  int64_t slot = 0;  // 0: the weights
  Range elements;    // of the ps's range, whose first element is 0
};

inline int64_t RangePieceCount(Range range, int64_t slots) { return BlockCount(range) * (1 + slots); }

inline RangePiece RangePieceAt(Range range, int64_t slots, int64_t piece) {
  const Range block = BlockOf(range, piece / (1 + slots));
  return {piece % (1 + slots), {block.begin - range.begin, block.end - range.begin}};
}

}  // namespace dtrain
