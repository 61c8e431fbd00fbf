#include "trainer/ps/range_cut.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain {

RangeCut::RangeCut(Range range, std::vector<net::LentBuffer> weights,
                   std::vector<gpu::Span<const float>> slots)
    : range_(range),
      slots_(std::move(slots)),
      updated_(weights.size()),
      kept_(weights.size() * (1 + slots_.size())) {
  for (size_t block = 0; block < weights.size(); ++block) kept_[block] = std::move(weights[block]);
}

net::LentBuffer RangeCut::CopyOfSlot(int64_t piece) const {
  const RangePiece where = At(piece);
  net::LentBuffer copy(BytesOf(piece));
  const float* const values = slots_[static_cast<size_t>(where.slot - 1)].data + where.elements.begin;
  if (copy.bytes() > 0) std::memcpy(copy.floats(), values, copy.bytes());
  return copy;
}

// A copy that only the reader needs is the reader's alone: it goes with it.
std::optional<RangeCut::Piece> RangeCut::Read(int64_t piece) const {
  const std::lock_guard lock(mutex_);
  if (piece < released_ || piece >= piece_count()) return std::nullopt;
  const std::optional<net::LentBuffer>& kept = kept_[static_cast<size_t>(piece)];
  net::LentBuffer values = kept ? kept->Share() : CopyOfSlot(piece);
  const net::TensorView bytes{reinterpret_cast<const std::byte*>(values.floats()), BytesOf(piece)};
  return Piece{bytes, std::move(values)};
}

std::optional<net::LentBytes> RangeCut::Lend(int64_t piece) const {
  const std::optional<Piece> read = Read(piece);
  if (!read) return std::nullopt;
  return read->hold.Lend(0, read->bytes.size);
}

void RangeCut::ReleaseBefore(int64_t piece) {
  std::vector<std::optional<net::LentBuffer>> released;  // whose memory goes outside the lock
  const std::lock_guard lock(mutex_);
  for (; released_ < std::min(piece, piece_count()); ++released_) {
    released.push_back(std::exchange(kept_[static_cast<size_t>(released_)], std::nullopt));
  }
}

void RangeCut::BeforeUpdate(int64_t block) {
  if (updated_[static_cast<size_t>(block)]) return;
  updated_[static_cast<size_t>(block)] = true;
  const auto blocks = static_cast<int64_t>(updated_.size());
  for (int64_t piece = block + blocks; piece < piece_count(); piece += blocks) {
    const std::lock_guard lock(mutex_);
    if (piece >= released_) kept_[static_cast<size_t>(piece)] = CopyOfSlot(piece);
  }
}

}  // namespace dtrain
