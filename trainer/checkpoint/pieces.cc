#include "trainer/checkpoint/pieces.h"

#include <algorithm>

#include "trainer/model/blocks.h"

namespace dtrain {
namespace {

// One slot of one block, variable by variable.
void AddBlock(const Layout& layout, Range range, Range block, int slot, std::vector<Piece>* pieces) {
  for (size_t i = 0; i < layout.variables.size(); ++i) {
    const Variable& variable = layout.variables[i];
    const int64_t begin = std::max(block.begin, variable.offset);
    const int64_t end = std::min(block.end, variable.offset + variable.size());
    if (begin >= end) continue;
    pieces->push_back({static_cast<int>(i), slot, begin - variable.offset, end - begin, begin - range.begin});
  }
}

}  // namespace

std::vector<Piece> PiecesOf(const Layout& layout, int ps, int slots) {
  const Range range = layout.ps.at(static_cast<size_t>(ps));
  std::vector<Piece> pieces;
  for (int64_t block = 0; block < BlockCount(range); ++block) {
    for (int slot = 0; slot <= slots; ++slot) AddBlock(layout, range, BlockOf(range, block), slot, &pieces);
  }
  return pieces;
}

}  // namespace dtrain
