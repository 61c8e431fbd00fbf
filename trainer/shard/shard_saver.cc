#include "trainer/shard/shard_saver.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "net/codec.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// All checksums go to ps 0 in one message.
constexpr size_t kMaxChecksums = (net::kMaxHeaderBytes - 64 * 1024) / sizeof(uint64_t);

}  // namespace

bool HasTooManyPieces(const Layout& layout, int ps, SlotCounts slots) {
  size_t numbers = 0;
  for (const auto& part : PartsOf(layout, ps, slots)) numbers += part->numbers();
  return numbers > kMaxChecksums;
}

ShardSaver::~ShardSaver() {
  if (snapshot_) snapshot_->Release();
}

void ShardSaver::Begin(uint64_t number, std::shared_ptr<ShardSnapshot> snapshot,
                       const std::string& directory) {
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
ShardSaver::Outcome ShardSaver::Write(ShardSnapshot& snapshot, const std::string& directory) const {
  try {
    std::vector<float> scratch(kBlockValues);
    PartsWriter writer(layout_, ps_, slots_, directory);
    for (size_t part = 0; part < writer.parts().size(); ++part) {
      Snapshot& its = *snapshot.parts()[part];
      const int64_t of_part = writer.parts()[part]->count(), count = std::min(of_part, its.piece_count());
      const bool is_open = of_part == PartPieces::kOpenEnd;  // of others HasTooManyPieces() knows before
      for (int64_t piece = 0; piece < count; ++piece) {
        const std::optional<Snapshot::Held> read = its.Read(piece, scratch.data());
        if (!read) return {{}, "the checkpoint was given up"};
        writer.Add(part, read->bytes);
        its.ReleaseBefore(piece + 1);
        if (!is_open || writer.numbers() <= kMaxChecksums) continue;
        return {{}, "its rows are too many pieces of 1 MiB for one message. Use more ps"};
      }
    }
    return {writer.Finish(), ""};
  } catch (const std::exception& error) {
    return {{}, ShortText(FailureText(error))};
  }
}

}  // namespace dtrain
