#include "trainer/shard/table_snapshot.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace dtrain {

TableSnapshot::TableSnapshot(const RowStore& rows, int64_t width, size_t max_undo_bytes)
    : rows_(rows),
      pieces_(rows.rows(), rows.values()),
      max_bytes_(max_undo_bytes),
      taken_(Clock::now()),
      undo_(pieces_.count(), rows.values()),
      next_(taken_),
      writer_(width, rows.values()),
      initial_(static_cast<size_t>(rows.values())) {}

// Copies the rows of a piece as they were. False: the piece is released.
bool TableSnapshot::CopyRows(int64_t piece) const {
  const RowRange range = pieces_.At(piece);
  const auto values = static_cast<size_t>(rows_.values());
  const size_t group_values = static_cast<size_t>(rows_.group_rows()) * values;
  const uint64_t first = rows_.GroupOf(range.begin);
  is_written_.assign(rows_.GroupOf(range.end - 1) - first + 1, false);
  copied_.resize(is_written_.size() * group_values);
  const std::lock_guard lock(mutex_);
  if (!Has(piece)) return false;
  for (size_t group = 0; group < is_written_.size(); ++group) {
    const float* const from = rows_.Group(first + group);
    if (from == nullptr) continue;
    is_written_[group] = true;
    std::memcpy(copied_.data() + group * group_values, from, group_values * sizeof(float));
  }
  undo_.VisitRows(piece, [&](uint32_t at, const float* row) {
    std::copy_n(row, values, copied_.data() + at * values);
  });
  return true;
}

// Puts together the rows that are not as they were in the beginning. copied_ has them.
size_t TableSnapshot::Write(int64_t piece, std::byte* bytes) const {
  const RowRange range = pieces_.At(piece);
  const auto group_rows = static_cast<uint64_t>(rows_.group_rows());
  uint64_t row = range.begin;
  const float* values = copied_.data();
  for (const bool is_written : is_written_) {
    for (uint64_t i = 0; i < group_rows && row < range.end; ++i, ++row, values += initial_.size()) {
      if (is_written && rows_.IsChanged(row, values, rows_.values(), initial_.data())) writer_.Add(row, values);
    }
  }
  return writer_.Finish(range, bytes);
}

std::optional<Snapshot::Piece> TableSnapshot::Read(int64_t piece, float* scratch) const {
  static_assert(kBlockValues * sizeof(float) >= kMaxRowPieceBytes);
  if (piece < 0 || piece >= piece_count()) return std::nullopt;
  const std::lock_guard reading(reading_);
  if (!CopyRows(piece)) return std::nullopt;
  auto* const bytes = reinterpret_cast<std::byte*>(scratch);
  const size_t size = Write(piece, bytes);
  return Piece{{bytes, size}, std::nullopt};
}

std::optional<net::LentBytes> TableSnapshot::Lend(int64_t piece) const {
  if (piece < 0 || piece >= piece_count()) return std::nullopt;
  const net::LentBuffer buffer(kMaxRowPieceBytes);
  const std::lock_guard reading(reading_);
  if (!CopyRows(piece)) return std::nullopt;
  return buffer.Lend(0, Write(piece, reinterpret_cast<std::byte*>(buffer.floats())));
}

void TableSnapshot::ReleaseBefore(int64_t piece) {
  const std::lock_guard lock(mutex_);
  for (; released_ < std::min(piece, piece_count()); ++released_) undo_.Drop(released_);
}

SnapshotCost TableSnapshot::Cost() const {
  const std::lock_guard lock(mutex_);
  return cost_;
}

std::unique_lock<std::mutex> TableSnapshot::BeforeUpdate(KeySpan keys) {
  const TimePoint begun = Clock::now();
  Wait();
  std::unique_lock lock(mutex_);
  if (released_ == piece_count()) return {};
  const size_t before = undo_.bytes();
  for (const uint64_t key : keys) {
    const int64_t piece = pieces_.Of(key);
    float* kept = nullptr;
    const auto at = static_cast<uint32_t>(key - pieces_.At(piece).begin);
    if (piece < released_ || undo_.Has(piece, at, &kept)) continue;
    const float* const row = rows_.Find(key);
    row != nullptr ? void(std::copy_n(row, rows_.values(), kept)) : rows_.InitialRow(key, kept);
  }
  const TimePoint now = Clock::now();
  cost_.max_bytes = std::max(cost_.max_bytes, undo_.bytes());
  cost_.longest_wait_s = std::max(cost_.longest_wait_s, SecondsBetween(begun, now));
  PlanNext(now, undo_.bytes() - before);
  return lock;
}

void TableSnapshot::Wait() {
  TimePoint until;
  {
    const std::lock_guard lock(mutex_);
    if (released_ == piece_count()) return;
    until = next_;
  }
  const TimePoint now = Clock::now();
  if (until <= now) return;
  std::this_thread::sleep_until(until);
  const std::lock_guard lock(mutex_);
  cost_.waited_s += SecondsBetween(now, Clock::now());
}

// Where more than half of the memory is taken, an update that took `added` bytes has the share of the time
// until the end of the reading that it took of what is left. The lock is held.
void TableSnapshot::PlanNext(TimePoint now, size_t added) {
  const size_t used = undo_.bytes();
  if (used < max_bytes_ / 2) return;
  const double read = static_cast<double>(std::max<int64_t>(released_, 1));
  const double left_s =
      SecondsBetween(taken_, now) * (static_cast<double>(piece_count()) - read) / read;
  const double left_bytes = static_cast<double>(max_bytes_ - std::min(used, max_bytes_ - 1));
  const std::chrono::duration<double> share(static_cast<double>(added) / left_bytes * left_s);
  next_ = now + std::chrono::duration_cast<Clock::duration>(std::min<decltype(share)>(share, kMaxWait));
}

}  // namespace dtrain
