// The bytes of a shard file (docs/checkpoint.md) and the pieces of a range in it: a fixed header, then pieces
// of float32, each padded with zeros to a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/model/layout.h"
#include "trainer/table/row_pieces.h"

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

// Pieces: the unit in which a ps's range, weights and optimizer slots, is written to its shard file and sent
// to the writer of the file. They are a function of the layout, so both ends of the wire know them by number.

// Elements of one variable within one block (trainer/model/layout.h) of a ps's range.
struct Piece {
  int variable = 0;   // index into Layout::variables
  int slot = 0;       // 0: weights; then the optimizer's slots, from 1
  int64_t first = 0;  // first element of the variable, row by row
  int64_t count = 0;
  int64_t begin = 0;  // first element of the ps's range
};

// The pieces of one ps's shard file in the order of the file: for each block its weights, then each of the
// `slots` optimizer slots. Empty for an empty range. Those of rows of a table are of their own kind.
std::vector<Piece> PiecesOf(const Layout& layout, int ps, int slots);

// The pieces of the rows of one ps. `layout` has a table that is no hash table.
RowPieces RowPiecesOf(const Layout& layout, int ps, int64_t slots);

// The number of pieces of its range (trainer/model/layout.h) that a ps gives to a writer.
int64_t RangePiecesOf(const Layout& layout, int ps, int64_t slots);
// The number of all pieces that it gives: behind those of its range are those of its rows; of a hash table
// the max, since their number follows from its rows (trainer/table/hash_pieces.h).
int64_t PartPieces(const Layout& layout, int ps, int64_t slots);
// Whether piece `piece` of these can have so many bytes. One of a hash table has a row, or no bytes: it is
// behind the last one.
bool PieceFits(const Layout& layout, int ps, int64_t slots, int64_t piece, size_t bytes);

}  // namespace dtrain
