#include "trainer/shard/table_snapshot.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr uint64_t kMaxSliceRows = 1 << 13;

}  // namespace

// A ps may apply the updates of all exchanges that are under way, each of them a block at a time, before it
// answers a heartbeat. What these wait together stays well below the time after which a worker takes the ps
// for lost.
UndoLimits UndoLimitsFor(const Config& config, int64_t blocks, size_t left) {
  UndoLimits limits;
  limits.aim_bytes = std::min(limits.aim_bytes, left / 4);
  limits.max_bytes = std::min(limits.max_bytes, left / 2);
  const auto exchanges =
      static_cast<double>(config.cluster.worker.size()) * static_cast<double>(config.train.in_flight);
  const std::chrono::duration<double> share(config.failure.detect_s /
                                            (4 * std::max(exchanges, 1.0) * static_cast<double>(blocks)));
  if (share < limits.max_wait) limits.max_wait = std::chrono::duration_cast<std::chrono::nanoseconds>(share);
  return limits;
}

std::chrono::nanoseconds WaitAfterUpdate(const UndoLimits& limits, size_t used, size_t added, double read,
                                         double passed_s) {
  if (used < limits.aim_bytes / 2) return {};
  if (used >= limits.aim_bytes || read <= 0) return limits.max_wait;
  const double left_s = passed_s * (1 - read) / read;
  const double share = static_cast<double>(added) / static_cast<double>(limits.aim_bytes - used);
  const std::chrono::duration<double> wait(share * left_s);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::min<decltype(wait)>(wait, limits.max_wait));
}

TableSnapshot::TableSnapshot(const RowStore& rows, int64_t width, const UndoLimits& limits,
                             std::vector<bool> changed)
    : rows_(rows),
      width_(width),
      pieces_(rows.rows(), rows.values()),
      slice_bits_(BitsBelow(std::min(kMaxSliceRows, pieces_.rows()))),  // those of a piece are 2^n
      limits_(limits),
      changed_(std::move(changed)),
      taken_(Clock::now()),
      undo_(static_cast<int64_t>(((rows.rows().size() + (uint64_t{1} << slice_bits_) - 1) >> slice_bits_)),
            rows.values()),
      next_(taken_),
      writer_(width, rows.values(), changed_.empty() ? 0 : rows.unit_rows()),
      initial_(static_cast<size_t>(rows.values())) {
  DT_CHECK(uint64_t{1} << slice_bits_ >= static_cast<uint64_t>(rows.unit_rows()), slice_bits_);
}

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
    const float* const from = HasGroup(first + group) ? rows_.Group(first + group) : nullptr;
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
  const std::lock_guard reading(
      reading_);  // from here on the rows stay until it goes, or CopySlice() says no
  const RowRange range = pieces_.At(piece);
  const auto group_rows = static_cast<uint64_t>(rows_.group_rows());
  const uint64_t slice_rows = uint64_t{1} << slice_bits_;
  for (uint64_t begin = range.begin; begin < range.end; begin += slice_rows) {
    const RowRange slice{begin, std::min(begin + slice_rows, range.end)};
    if (!CopySlice(piece, slice)) {
      writer_.Finish(range, bytes);
      return std::nullopt;
    }
    uint64_t group = rows_.GroupOf(begin), row = begin;
    const float* values = copied_.data();
    for (const bool is_written : is_written_) {  // most groups of a large table are not
      if (is_written && !changed_.empty()) writer_.Cover(row);
      uint64_t changed =
          is_written ? rows_.ChangedIn(group, values, rows_.values(), initial_.data()) : uint64_t{0};
      for (; changed != 0; changed &= changed - 1) {
        const auto i = static_cast<uint64_t>(__builtin_ctzll(changed));
        writer_.Add(row + i, values + i * initial_.size());
      }
      ++group;
      row += group_rows;
      values += group_rows * initial_.size();
    }
  }
  return writer_.Finish(range, bytes);
}

std::optional<Snapshot::Held> TableSnapshot::Read(int64_t piece, float* scratch) const {
  static_assert(kBlockValues * sizeof(float) >= kMaxRowPieceBytes);
  auto* const bytes = reinterpret_cast<std::byte*>(scratch);
  const std::optional<size_t> size = Write(piece, bytes);
  if (!size) return std::nullopt;
  return Held{{bytes, *size}, std::nullopt};
}

std::optional<net::LentBytes> TableSnapshot::Lend(int64_t piece) const {
  const net::LentBuffer buffer(kMaxRowPieceBytes);
  const std::optional<size_t> size = Write(piece, reinterpret_cast<std::byte*>(buffer.floats()));
  if (!size) return std::nullopt;
  return buffer.Lend(0, *size);
}

// When all pieces are released no reader is in the rows any more: they may go.
void TableSnapshot::ReleaseBefore(int64_t piece) {
  std::unique_lock reading(reading_, std::defer_lock);
  if (piece >= piece_count()) reading.lock();
  const std::lock_guard lock(mutex_);
  for (; released_ < std::min(piece, piece_count()); ++released_) {
    const RowRange range = pieces_.At(released_);
    for (int64_t slice = SliceOf(range.begin); slice <= SliceOf(range.end - 1); ++slice) undo_.Drop(slice);
  }
  if (released_ == piece_count()) undo_.DropAll();
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
  const TimePoint locked = Clock::now();
  const size_t before = undo_.bytes();
  KeepRows(keys);
  const size_t used = undo_.bytes();
  const TimePoint now = Clock::now();
  cost_.max_bytes = std::max(cost_.max_bytes, used);
  cost_.waited_s += SecondsBetween(begun, locked);
  cost_.longest_wait_s = std::max(cost_.longest_wait_s, SecondsBetween(begun, now));
  if (used > limits_.max_bytes) {
    cost_.given_up = true;
    released_ = piece_count();
    undo_.DropAll();
  }
  const double read = static_cast<double>(released_) / static_cast<double>(piece_count());
  next_ = now + WaitAfterUpdate(limits_, used, used - before, read, SecondsBetween(taken_, now));
  return lock;
}

void TableSnapshot::KeepRows(KeySpan keys) {
  const uint64_t first = pieces_.At(released_).begin;
  const uint64_t mask = (uint64_t{1} << slice_bits_) - 1;
  constexpr int64_t kAhead = 16;
  for (int64_t i = 0; i < keys.size; ++i) {
    if (i + 2 * kAhead < keys.size) undo_.WillKeep(SliceOf(keys[i + 2 * kAhead]));
    if (i + kAhead < keys.size) undo_.WillKeepSoon(SliceOf(keys[i + kAhead]));
    if (keys[i] < first || (!keeps_all_ && !HasGroup(rows_.GroupOf(keys[i])))) continue;
    const auto at = static_cast<uint32_t>((keys[i] - rows_.rows().begin) & mask);
    float* const kept = undo_.Keep(SliceOf(keys[i]), at);
    if (kept == nullptr) continue;
    const float* const row = rows_.Find(keys[i]);
    row != nullptr ? void(std::copy_n(row, rows_.values(), kept)) : rows_.InitialRow(keys[i], kept);
  }
}

bool TableSnapshot::GoBack(KeySpan keys, float* weights) const {
  const std::lock_guard lock(mutex_);
  if (released_ > 0) return false;
  const uint64_t mask = (uint64_t{1} << slice_bits_) - 1;
  for (int64_t i = 0; i < keys.size; ++i, weights += width_) {
    const auto at = static_cast<uint32_t>((keys[i] - rows_.rows().begin) & mask);
    const float* const row = undo_.Kept(SliceOf(keys[i]), at);
    if (row != nullptr) std::copy_n(row, width_, weights);
  }
  return true;
}

void TableSnapshot::Wait() {
  if (!updates_wait_) return;
  TimePoint until;
  {
    const std::lock_guard lock(mutex_);
    if (released_ == piece_count()) return;
    until = next_;
    cost_.slowed = cost_.slowed || until > Clock::now();
  }
  std::this_thread::sleep_until(until);
}

}  // namespace dtrain
