#include "trainer/ps/shard_saver.h"

#include <utility>

#include "base/error.h"
#include "net/codec.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/peer/short_text.h"

namespace dtrain {
namespace {

// They go to ps 0 in one message.
constexpr size_t kMostChecksums = (net::kMaxHeaderBytes - 64 * 1024) / sizeof(uint64_t);

}  // namespace

bool HasTooManyPieces(const Layout& layout, int ps, int64_t slots) {
  return PiecesOf(layout, ps, static_cast<int>(slots)).size() > kMostChecksums;
}

ShardSaver::~ShardSaver() {
  if (cut_) cut_->ReleaseBefore(cut_->piece_count());
}

void ShardSaver::Begin(uint64_t number, std::shared_ptr<RangeCut> cut, const std::string& directory) {
  if (number == number_ || busy()) return;
  number_ = number;
  outcome_.reset();
  cut_ = std::move(cut);
  writing_ = std::async(std::launch::async, [this, cut = cut_, directory] { return Write(*cut, directory); });
}

bool ShardSaver::Poll() {
  if (!busy() || writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  outcome_ = writing_.get();
  cut_.reset();
  return true;
}

// On the thread; what it reads of this is const.
ShardSaver::Outcome ShardSaver::Write(RangeCut& cut, const std::string& directory) const {
  try {
    std::vector<float> scratch(kBlockValues);
    RangeWriter writer(layout_, ps_, slots_, directory);
    for (int64_t piece = 0; piece < writer.piece_count(); ++piece) {
      const std::optional<RangeCut::Piece> read = cut.Read(piece, scratch.data());
      if (!read) return {{}, "the checkpoint was given up"};
      writer.Add(read->bytes.data);
      cut.ReleaseBefore(piece + 1);
    }
    return {writer.Finish(), ""};
  } catch (const std::exception& error) {
    return {{}, ShortText(FailureText(error))};
  }
}

}  // namespace dtrain
