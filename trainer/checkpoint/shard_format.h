// What the bytes of a shard file are (docs/checkpoint.md): a fixed header, then pieces of float32, each
// padded with zeros to a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

constexpr int64_t kShardAlignment = 64;
// The padding of the header is written as zero bytes, by the array's own size.
constexpr char kShardHeaderText[kShardAlignment] = "dtrain checkpoint shard, format 1\n";
constexpr std::string_view kShardHeader(kShardHeaderText, sizeof kShardHeaderText);

constexpr int64_t Padded(int64_t bytes) {
  return (bytes + kShardAlignment - 1) / kShardAlignment * kShardAlignment;
}

constexpr char kManifestName[] = "manifest";
constexpr char kConfigName[] = "config.yaml";
// "shard-0-of-2".
std::string ShardName(int64_t ps, int64_t count);

// XXH3-64.
uint64_t Checksum(const void* data, size_t bytes);
// The same of the bytes and the zeros behind them that pad them.
uint64_t PieceChecksum(const void* data, size_t bytes);

}  // namespace dtrain
