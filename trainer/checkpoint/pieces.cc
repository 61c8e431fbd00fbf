#include "trainer/checkpoint/pieces.h"

#include <algorithm>

#include "trainer/model/blocks.h"

namespace dtrain {
namespace {

// The weights of one block, variable by variable.
void AddBlock(const Layout& layout, Range range, Range block, std::vector<Piece>* pieces) {
  for (size_t i = 0; i < layout.variables.size(); ++i) {
    const Variable& variable = layout.variables[i];
    const int64_t begin = std::max(block.begin, variable.offset);
    const int64_t end = std::min(block.end, variable.offset + variable.size());
    if (begin >= end) continue;
    pieces->push_back({static_cast<int>(i), 0, begin - variable.offset, end - begin, begin - range.begin});
  }
}

}  // namespace

std::vector<Piece> PiecesOf(const Layout& layout, int ps, int slots) {
  const Range range = layout.ps.at(static_cast<size_t>(ps));
  std::vector<Piece> pieces;
  for (int64_t block = 0; block < BlockCount(range); ++block) {
    AddBlock(layout, range, BlockOf(range, block), &pieces);
  }
  const size_t weights = pieces.size();
  for (int slot = 1; slot <= slots; ++slot) {
    for (size_t i = 0; i < weights; ++i) {
      pieces.push_back(pieces[i]);
      pieces.back().slot = slot;
    }
  }
  return pieces;
}

}  // namespace dtrain
