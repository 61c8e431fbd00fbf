#include "base/error.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/pieces.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

StoredShard BuildShard(const Layout& layout, int ps, size_t slots, const std::vector<uint64_t>& checksums) {
  const std::vector<Piece> pieces = PiecesOf(layout, ps, static_cast<int>(slots));
  if (pieces.size() != checksums.size()) {
    throw Failure(
        ExitCode::kInternal,
        fmt::format("ps {}: {} checksums for the {} pieces of its part of a checkpoint. Does it run "
                    "the same dtrain and the same file?",
                    ps, checksums.size(), pieces.size()));
  }
  StoredShard shard{ShardName(ps, static_cast<int64_t>(layout.ps.size())), kShardAlignment, {}};
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    shard.pieces.push_back({piece.variable, piece.slot, piece.first, piece.count, shard.bytes, checksums[i]});
    shard.bytes += Padded(shard.pieces.back().bytes());
  }
  return shard;
}

}  // namespace

Manifest BuildManifest(const Layout& layout, const std::vector<std::string>& slots,
                       const std::vector<std::vector<uint64_t>>& checksums) {
  if (checksums.size() != layout.ps.size()) {
    throw Failure(ExitCode::kInternal, fmt::format("a checkpoint of {} ps has the checksums of {}.",
                                                   layout.ps.size(), checksums.size()));
  }
  Manifest manifest;
  manifest.version = kVersion;
  manifest.slots = slots;
  for (const Variable& variable : layout.variables) {
    manifest.tensors.push_back({variable.name, variable.rows, variable.cols});
  }
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    manifest.shards.push_back(BuildShard(layout, static_cast<int>(ps), slots.size(), checksums[ps]));
  }
  return manifest;
}

}  // namespace dtrain
