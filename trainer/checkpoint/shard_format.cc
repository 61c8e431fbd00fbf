#include "trainer/checkpoint/shard_format.h"

#include <fmt/core.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

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

}  // namespace dtrain
