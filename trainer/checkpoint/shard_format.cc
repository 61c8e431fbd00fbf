#define XXH_INLINE_ALL
#include "trainer/checkpoint/shard_format.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>

#include "trainer/model/layout.h"

namespace dtrain {

std::string ShardName(int64_t ps, int64_t count) { return fmt::format("shard-{}-of-{}", ps, count); }

uint64_t Checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

uint64_t PieceChecksum(const void* data, size_t bytes) {
  static constexpr char kZeros[kShardAlignment] = {};
  const size_t padding = static_cast<size_t>(Padded(static_cast<int64_t>(bytes))) - bytes;
  if (padding == 0) return Checksum(data, bytes);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, data, bytes);
  XXH3_64bits_update(&state, kZeros, padding);
  return XXH3_64bits_digest(&state);
}

namespace {

// Adds one slot of one block, variable by variable.
void AddBlock(const Layout& layout, Range range, Range block, int slot, std::vector<TensorPiece>* pieces) {
  for (size_t i = 0; i < layout.variables.size(); ++i) {
    const Variable& variable = layout.variables[i];
    const int64_t begin = std::max(block.begin, variable.offset);
    const int64_t end = std::min(block.end, variable.offset + variable.size());
    if (begin >= end) continue;
    pieces->push_back({static_cast<int>(i), slot, begin - variable.offset, end - begin, begin - range.begin});
  }
}

}  // namespace

std::vector<TensorPiece> PiecesOf(const Layout& layout, int ps, int slots) {
  const Range range = layout.ps.at(static_cast<size_t>(ps));
  std::vector<TensorPiece> pieces;
  for (int64_t block = 0; block < RangeBlocksOf(layout, static_cast<size_t>(ps)); ++block) {
    for (int slot = 0; slot <= slots; ++slot) AddBlock(layout, range, BlockOf(range, block), slot, &pieces);
  }
  return pieces;
}

}  // namespace dtrain
