#include "trainer/shard/shard_saver.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "net/codec.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// All checksums go to ps 0 in one message.
constexpr size_t kMaxChecksums = (net::kMaxHeaderBytes - 64 * 1024) / sizeof(uint64_t);

}  // namespace

bool HasTooManyPieces(const Layout& layout, int ps, int64_t slots) {
  if (layout.has_hash_table()) return false;  // they are counted when they are there
  const size_t of_rows = layout.table ? static_cast<size_t>(RowPiecesOf(layout, ps, slots).count()) : 0;
  return PiecesOf(layout, ps, static_cast<int>(slots)).size() + 2 * of_rows > kMaxChecksums;
}

ShardSaver::~ShardSaver() {
  if (snapshot_) snapshot_->ReleaseBefore(snapshot_->piece_count());
}

void ShardSaver::Begin(uint64_t number, std::shared_ptr<Snapshot> snapshot, const std::string& directory) {
  if (number == number_ || busy()) return;
  number_ = number;
  outcome_.reset();
  snapshot_ = std::move(snapshot);
  writing_ = std::async(std::launch::async,
                        [this, snapshot = snapshot_, directory] { return Write(*snapshot, directory); });
}

bool ShardSaver::Poll() {
  if (!busy() || writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  outcome_ = writing_.get();
  snapshot_.reset();
  return true;
}

// Runs on the thread; reads only const members.
ShardSaver::Outcome ShardSaver::Write(Snapshot& snapshot, const std::string& directory) const {
  try {
    std::vector<float> scratch(kBlockValues);
    RangeWriter writer(layout_, ps_, slots_, directory);
    const int64_t count = std::min(writer.piece_count(), snapshot.piece_count());
    if (layout_.has_hash_table() && 3 * count > static_cast<int64_t>(kMaxChecksums)) {
      return {{},
              fmt::format("its rows are {} pieces of 1 MiB, too many for one message. Use more ps", count)};
    }
    for (int64_t piece = 0; piece < count; ++piece) {
      const std::optional<Snapshot::Piece> read = snapshot.Read(piece, scratch.data());
      if (!read) return {{}, "the checkpoint was given up"};
      writer.Add(read->bytes);
      snapshot.ReleaseBefore(piece + 1);
    }
    return {writer.Finish(), ""};
  } catch (const std::exception& error) {
    return {{}, ShortText(FailureText(error))};
  }
}

}  // namespace dtrain
