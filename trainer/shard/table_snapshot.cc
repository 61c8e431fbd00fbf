#include "trainer/shard/table_snapshot.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace dtrain {
namespace {

constexpr uint64_t kMaxSliceRows = 1 << 13;

}  // namespace

TableSnapshot::TableSnapshot(const RowStore& rows, int64_t width, size_t max_undo_bytes)
    : rows_(rows),
      pieces_(rows.rows(), rows.values()),
      slice_bits_(BitsBelow(std::min(kMaxSliceRows, pieces_.rows()))),  // those of a piece are 2^n
      max_bytes_(max_undo_bytes),
      taken_(Clock::now()),
      undo_(SliceOf(rows.rows().end - 1) + 1, rows.values()),
      next_(taken_),
      writer_(width, rows.values()),
      initial_(static_cast<size_t>(rows.values())) {}

// Copies rows as they were. False: their piece is released.
bool TableSnapshot::CopySlice(int64_t piece, RowRange slice) const {
  const auto values = static_cast<size_t>(rows_.values());
  const size_t group_values = static_cast<size_t>(rows_.group_rows()) * values;
  const uint64_t first = rows_.GroupOf(slice.begin);
  is_written_.assign(rows_.GroupOf(slice.end - 1) - first + 1, false);
  copied_.resize(is_written_.size() * group_values);
  const std::lock_guard lock(mutex_);
  if (!Has(piece)) return false;
  for (size_t group = 0; group < is_written_.size(); ++group) {
    const float* const from = rows_.Group(first + group);
    if (from == nullptr) continue;
    is_written_[group] = true;
    std::memcpy(copied_.data() + group * group_values, from, group_values * sizeof(float));
  }
  undo_.VisitRows(SliceOf(slice.begin), [&](uint32_t at, const float* row) {
    std::copy_n(row, values, copied_.data() + at * values);
  });
  return true;
}

// Puts together the rows that are not as they were in the beginning. Unset: the piece is released. A row that
// changes between two slices is kept, so all slices are of the one moment.
std::optional<size_t> TableSnapshot::Write(int64_t piece, std::byte* bytes) const {
  if (piece < 0 || piece >= piece_count()) return std::nullopt;
  const std::lock_guard reading(reading_);
  const RowRange range = pieces_.At(piece);
  const auto group_rows = static_cast<uint64_t>(rows_.group_rows());
  const uint64_t slice_rows = uint64_t{1} << slice_bits_;
  for (uint64_t begin = range.begin; begin < range.end; begin += slice_rows) {
    const RowRange slice{begin, std::min(begin + slice_rows, range.end)};
    if (!CopySlice(piece, slice)) {
      writer_.Finish(range, bytes);
      return std::nullopt;
    }
    uint64_t row = begin;
    const float* values = copied_.data();
    for (const bool is_written : is_written_) {
      for (uint64_t i = 0; i < group_rows && row < slice.end; ++i, ++row, values += initial_.size()) {
        if (is_written && rows_.IsChanged(row, values, rows_.values(), initial_.data()))
          writer_.Add(row, values);
      }
    }
  }
  return writer_.Finish(range, bytes);
}

std::optional<Snapshot::Piece> TableSnapshot::Read(int64_t piece, float* scratch) const {
  static_assert(kBlockValues * sizeof(float) >= kMaxRowPieceBytes);
  auto* const bytes = reinterpret_cast<std::byte*>(scratch);
  const std::optional<size_t> size = Write(piece, bytes);
  if (!size) return std::nullopt;
  return Piece{{bytes, *size}, std::nullopt};
}

std::optional<net::LentBytes> TableSnapshot::Lend(int64_t piece) const {
  const net::LentBuffer buffer(kMaxRowPieceBytes);
  const std::optional<size_t> size = Write(piece, reinterpret_cast<std::byte*>(buffer.floats()));
  if (!size) return std::nullopt;
  return buffer.Lend(0, *size);
}

void TableSnapshot::ReleaseBefore(int64_t piece) {
  const std::lock_guard lock(mutex_);
  for (; released_ < std::min(piece, piece_count()); ++released_) {
    const RowRange range = pieces_.At(released_);
    for (int64_t slice = SliceOf(range.begin); slice <= SliceOf(range.end - 1); ++slice) undo_.Drop(slice);
  }
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
  const uint64_t first = pieces_.At(released_).begin;
  const uint64_t mask = (uint64_t{1} << slice_bits_) - 1;
  constexpr int64_t kAhead = 16;
  for (int64_t i = 0; i < keys.size; ++i) {
    if (i + 2 * kAhead < keys.size) undo_.WillKeep(SliceOf(keys[i + 2 * kAhead]));
    if (i + kAhead < keys.size) undo_.WillKeepSoon(SliceOf(keys[i + kAhead]));
    if (keys[i] < first) continue;
    const auto at = static_cast<uint32_t>((keys[i] - rows_.rows().begin) & mask);
    float* const kept = undo_.Keep(SliceOf(keys[i]), at);
    if (kept == nullptr) continue;
    const float* const row = rows_.Find(keys[i]);
    row != nullptr ? void(std::copy_n(row, rows_.values(), kept)) : rows_.InitialRow(keys[i], kept);
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
