#include "trainer/shard/table_shard.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/check.h"
#include "trainer/config/config.h"

namespace dtrain {
TableShard::TableShard(const Config& config, const Layout& layout, int ps_index)
    : RowShard(config, layout, ps_index),
      rows_(EmptyRows(config, *layout.table, layout.table->PartOf(ps_index))),
      changed_(config.checkpoint.delta > 0 ? rows_.unit_count() : 0) {
  rows_.Populate();
}

void TableShard::RestoreRow(uint64_t row, const float* values) {
  if (!initialised()) std::copy_n(values, rows_.values(), rows_.Touch(row));
}

std::shared_ptr<Snapshot> TableShard::TakeSnapshot(SnapshotOf of) {
  DropSnapshot();
  const bool all = of == SnapshotOf::kAll;
  DT_CHECK(all || config().checkpoint.delta > 0);
  snapshot_ = std::make_shared<TableSnapshot>(rows_, layout().width(),
                                              UndoLimitsFor(config(), block_count(), MemoryLeft()),
                                              all ? std::vector<bool>() : changed_);
  if (all) changed_.assign(changed_.size(), false);
  return snapshot_;
}

void TableShard::DropSnapshot() {
  if (snapshot_) snapshot_->ReleaseBefore(snapshot_->piece_count());
  snapshot_.reset();
}

void TableShard::UpdateRows(int64_t, const UpdateStep& step, KeySpan keys, const std::byte* gradient) {
  std::unique_lock<std::mutex> lock;  // a reader of the snapshot sees no row that is half updated
  if (snapshot_) lock = snapshot_->BeforeUpdate(keys);
  if (!changed_.empty()) NoteChanges(keys);
  optimizer().Apply(step, keys, gradient, &rows_);
}

void TableShard::NoteChanges(KeySpan keys) {
  for (const uint64_t key : keys) changed_[rows_.UnitOf(key)] = true;
}

// Copies the weights of rows to [keys, width]. A row that was never written stays so. All rows of a tile are
// found, and on their way from memory, before the first is read.
void TableShard::ReadRows(KeySpan keys, float* weights) {
  constexpr int64_t kTile = 256, kAheadOfList = 32;
  const int64_t width = layout().width();
  std::array<const float*, kTile> found;
  for (int64_t begin = 0; begin < keys.size; begin += kTile) {
    const int64_t end = std::min(begin + kTile, keys.size);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAheadOfList < keys.size) rows_.WillFind(keys[i + kAheadOfList]);
      const float* const row = rows_.Find(keys[i]);
      if (row != nullptr) PrefetchRow(row, width);
      found[static_cast<size_t>(i - begin)] = row;
    }
    for (int64_t i = begin; i < end; ++i) {
      const float* row = found[static_cast<size_t>(i - begin)];
      if (row == nullptr) row = rows_.InitialRow(keys[i]);
      if (width == 1) {
        *weights++ = *row;
      } else {
        CopyRow(row, width, weights);
        weights += width;
      }
    }
  }
}

uint64_t TableShard::PackChanged(RowRange range, std::vector<std::byte>* rows) const {
  std::vector<float> initial(static_cast<size_t>(rows_.values()));
  const uint64_t begin = rows_.rows().begin;
  int64_t looked = 0;
  for (uint64_t group = rows_.NextGroup(rows_.GroupOf(range.begin)); group < rows_.group_count();
       group = rows_.NextGroup(group + 1)) {
    const float* const values = rows_.Group(group);
    const uint64_t first = begin + group * static_cast<uint64_t>(rows_.group_rows());
    if (first >= range.end) break;
    if (looked >= kRowsAtOnce) return first;
    looked += rows_.group_rows();
    const size_t packed = rows->size();
    rows->resize(packed + static_cast<size_t>(rows_.group_rows()) * packed_bytes());
    std::byte* end = rows->data() + packed;
    uint64_t changed = rows_.ChangedIn(group, values, layout().width(), initial.data());
    for (; changed != 0; changed &= changed - 1) {
      const auto i = static_cast<uint64_t>(__builtin_ctzll(changed));
      if (first + i < range.begin || first + i >= range.end) continue;
      end = Pack(first + i, values + i * initial.size(), end);
    }
    rows->resize(static_cast<size_t>(end - rows->data()));
  }
  return range.end;
}

}  // namespace dtrain
