#include "trainer/shard/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtrain {
namespace {

constexpr size_t kAtATime = 32;

}  // namespace

net::LentBuffer SnapshotBuffers::Take() {
  const std::lock_guard lock(mutex_);
  if (buffers_.empty()) buffers_ = net::LentBuffer::AllocateMany(std::min(kAtATime, max_), bytes_);
  net::LentBuffer taken = std::move(buffers_.back());
  buffers_.pop_back();
  return taken;
}

void SnapshotBuffers::Give(net::LentBuffer buffer) {
  if (buffer.lent()) return;
  const std::lock_guard lock(mutex_);
  buffers_.push_back(std::move(buffer));
}

size_t SnapshotBuffers::count() const {
  const std::lock_guard lock(mutex_);
  return buffers_.size();
}

RangeSnapshot::RangeSnapshot(Range range, std::vector<net::LentBuffer> weights,
                             std::vector<gpu::Span<const float>> slots,
                             std::shared_ptr<SnapshotBuffers> buffers)
    : range_(range),
      slots_(std::move(slots)),
      buffers_(std::move(buffers)),
      updated_(weights.size()),
      kept_(weights.size() * (1 + slots_.size())) {
  for (size_t block = 0; block < weights.size(); ++block) {
    kept_[block * (1 + slots_.size())] = std::move(weights[block]);
  }
}

RangeSnapshot::RangeSnapshot(Range range, int64_t slots, std::vector<net::LentBuffer> pieces,
                             std::shared_ptr<SnapshotBuffers> buffers)
    : range_(range),
      slots_(static_cast<size_t>(slots)),
      buffers_(std::move(buffers)),
      updated_(pieces.size() / static_cast<size_t>(1 + slots), true) {
  for (net::LentBuffer& piece : pieces) kept_.emplace_back(std::move(piece));
}

void RangeSnapshot::CopySlot(int64_t piece, float* to) const {
  const RangePiece where = At(piece);
  const float* const values = slots_[static_cast<size_t>(where.slot - 1)].data + where.elements.begin;
  if (where.elements.size() > 0) std::memcpy(to, values, BytesOf(piece));
}

std::optional<Snapshot::Held> RangeSnapshot::Read(int64_t piece, float* scratch) const {
  const std::lock_guard lock(mutex_);
  if (!Has(piece)) return std::nullopt;
  std::optional<net::LentBuffer> hold;
  if (const auto& kept = kept_[static_cast<size_t>(piece)]) {
    hold = kept->Share();
  } else {
    CopySlot(piece, scratch);
  }
  const float* const values = hold ? hold->floats() : scratch;
  return Held{{reinterpret_cast<const std::byte*>(values), BytesOf(piece)}, std::move(hold)};
}

// A copy that is made only for the transport lives as long as its frame.
std::optional<net::LentBytes> RangeSnapshot::Lend(int64_t piece) const {
  const std::lock_guard lock(mutex_);
  if (!Has(piece)) return std::nullopt;
  if (const auto& kept = kept_[static_cast<size_t>(piece)]) return kept->Lend(0, BytesOf(piece));
  const net::LentBuffer copy(BytesOf(piece));
  CopySlot(piece, copy.floats());
  return copy.Lend(0, BytesOf(piece));
}

void RangeSnapshot::ReleaseBefore(int64_t piece) {
  std::vector<net::LentBuffer> released;
  {
    const std::lock_guard lock(mutex_);
    for (; released_ < std::min(piece, piece_count()); ++released_) {
      auto& kept = kept_[static_cast<size_t>(released_)];
      if (kept) released.push_back(std::move(*kept));
      kept.reset();
    }
  }
  for (net::LentBuffer& buffer : released) buffers_->Give(std::move(buffer));
}

void RangeSnapshot::BeforeUpdate(int64_t block) {
  if (updated_[static_cast<size_t>(block)]) return;
  updated_[static_cast<size_t>(block)] = true;
  const auto pieces = static_cast<int64_t>(1 + slots_.size());
  for (int64_t piece = block * pieces + 1; piece < (block + 1) * pieces; ++piece) {
    const std::lock_guard lock(mutex_);
    if (piece < released_) continue;
    net::LentBuffer copy = buffers_->Take();
    CopySlot(piece, copy.floats());
    kept_[static_cast<size_t>(piece)] = std::move(copy);
  }
}

}  // namespace dtrain
