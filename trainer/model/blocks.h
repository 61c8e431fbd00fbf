// Blocks: the pieces in which a ps's range travels and is updated. A range of up to kBlockValues is one
// block; a larger one is cut from its beginning, so that a large tensor is sent, applied and answered piece
// by piece, several at a time, and neither side ever holds a second copy of all of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trainer/model/layout.h"

namespace dtrain {

constexpr int64_t kBlockValues = 1 << 18;  // 1 MiB of float32

// At least 1: an empty range has one empty block.
inline int64_t BlockCount(Range range) {
  return std::max<int64_t>(1, (range.size() + kBlockValues - 1) / kBlockValues);
}

// Block `index` of `range`, as a range of the flat vector.
inline Range BlockOf(Range range, int64_t index) {
  const int64_t begin = range.begin + index * kBlockValues;
  return {begin, std::min(range.end, begin + kBlockValues)};
}

// RangePiece: all that a ps keeps of its range (the weights, then each slot of the optimizer) as numbered
// pieces of at most one block: the weights of the first block, each slot of it, then the next block. A reader
// that takes them in order is done with a block early, and updates need not copy it any more.
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
