#include "trainer/ps/cut_keeper.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace dtrain {

void CutKeeper::OnCut(const wire::Cut& cut) {
  if (cut.drop()) return Drop(cut.number());
  Take(cut.number(), cut.round());
}

void CutKeeper::Take(uint64_t number, uint64_t round) {
  if (number == number_ && cut_) return kept_();
  if (number <= number_) return;
  Drop(number_);
  number_ = number;
  round_ = round;
  due_ = true;
  Tick();
}

void CutKeeper::Drop(uint64_t number) {
  if (number != number_) return;
  due_ = false;
  shard_.DropCut();
  cut_.reset();
}

void CutKeeper::TakeWhenFinished() {
  if (!shard_.initialised() || !rule_.HasFinished(round_)) return;
  due_ = false;
  cut_ = shard_.TakeCut();
  kept_();
}

void CutKeeper::OnReadPiece(net::NodeId from, const wire::ReadPiece& read) {
  if (!cut_ || read.number() != number_) return;
  const uint64_t last = std::numeric_limits<int64_t>::max();
  const std::optional<net::LentBytes> values = cut_->Lend(static_cast<int64_t>(std::min(read.piece(), last)));
  if (!values) return;
  const uint64_t sum = config_.net.checksum ? net::PayloadChecksum(values->data, values->size) : 0;
  outbox_.Piece(from, read.number(), read.piece(), sum, *values);
}

}  // namespace dtrain
