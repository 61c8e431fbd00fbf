#include "trainer/shard/table_snapshot.h"

#include <algorithm>
#include <cstring>

namespace dtrain {

TableSnapshot::TableSnapshot(const RowStore& rows, int64_t width)
    : rows_(rows),
      pieces_(rows.rows(), rows.values()),
      is_copied_(rows.group_count()),
      writer_(width, rows.values()),
      initial_(static_cast<size_t>(rows.values())) {}

const float* TableSnapshot::GroupAtTheMoment(uint64_t group) const {
  return is_copied_[group] ? copies_.at(group).get() : rows_.Group(group);
}

// Puts together the rows that are not as they were in the beginning. The lock is held.
size_t TableSnapshot::Write(int64_t piece, std::byte* bytes) const {
  const RowRange range = pieces_.At(piece);
  const auto group_rows = static_cast<uint64_t>(rows_.group_rows());
  for (uint64_t group = rows_.GroupOf(range.begin); group <= rows_.GroupOf(range.end - 1); ++group) {
    const float* values = GroupAtTheMoment(group);
    if (values == nullptr) continue;
    uint64_t row = rows_.rows().begin + group * group_rows;
    for (uint64_t i = 0; i < group_rows; ++i, ++row, values += initial_.size()) {
      if (row < range.begin || row >= range.end) continue;
      if (rows_.IsChanged(row, values, rows_.values(), initial_.data())) writer_.Add(row, values);
    }
  }
  return writer_.Finish(range, bytes);
}

std::optional<Snapshot::Piece> TableSnapshot::Read(int64_t piece, float* scratch) const {
  static_assert(kBlockValues * sizeof(float) >= kMaxRowPieceBytes);
  const std::lock_guard lock(mutex_);
  if (!Has(piece)) return std::nullopt;
  auto* const bytes = reinterpret_cast<std::byte*>(scratch);
  const size_t size = Write(piece, bytes);
  return Piece{{bytes, size}, std::nullopt};
}

std::optional<net::LentBytes> TableSnapshot::Lend(int64_t piece) const {
  const net::LentBuffer buffer(kMaxRowPieceBytes);
  const std::lock_guard lock(mutex_);
  if (!Has(piece)) return std::nullopt;
  return buffer.Lend(0, Write(piece, reinterpret_cast<std::byte*>(buffer.floats())));
}

// Copies of groups that lie in released pieces alone are given back.
void TableSnapshot::ReleaseBefore(int64_t piece) {
  const std::lock_guard lock(mutex_);
  released_ = std::max(released_, std::min(piece, piece_count()));
  if (released_ == piece_count()) return copies_.clear();
  copies_.erase(copies_.begin(), copies_.lower_bound(rows_.GroupOf(pieces_.At(released_).begin)));
}

void TableSnapshot::BeforeUpdate(KeySpan keys) {
  const std::lock_guard lock(mutex_);
  if (released_ == piece_count()) return;
  const uint64_t first = rows_.GroupOf(pieces_.At(released_).begin);
  for (const uint64_t key : keys) {
    const uint64_t group = rows_.GroupOf(key);
    if (group < first || is_copied_[group]) continue;
    is_copied_[group] = true;
    std::unique_ptr<float[]>& copy = copies_[group];
    const float* const values = rows_.Group(group);
    if (values == nullptr) continue;
    copy = std::make_unique<float[]>(rows_.group_bytes() / sizeof(float));
    std::memcpy(copy.get(), values, rows_.group_bytes());
  }
}

}  // namespace dtrain
