// The bytes of a shard file (docs/checkpoint.md) and the pieces of a range in it: a fixed header, then pieces
// of float32, each padded with zeros to a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/model/layout.h"

namespace dtrain {

constexpr int64_t kShardAlignment = 64;
// The array's size gives the header its padding of zero bytes.
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
// XXH3-64 of the bytes and their padding of zeros.
uint64_t PieceChecksum(const void* data, size_t bytes);

// TensorPiece: elements of one variable within one block (trainer/model/layout.h) of a ps's range.
struct TensorPiece {
  int variable = 0;   // index into Layout::variables
  int slot = 0;       // 0: weights; then the optimizer's slots, from 1
  int64_t first = 0;  // first element of the variable, row by row
  int64_t count = 0;
  int64_t begin = 0;  // first element of the ps's range
};

// What the shard file of one ps has of its range, in its order: for each block its weights, then each of the
// `slots` optimizer slots, cut where variables meet. Empty for an empty range.
std::vector<TensorPiece> PiecesOf(const Layout& layout, int ps, int slots);

}  // namespace dtrain
