#include "trainer/shard/table_part.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/check.h"
#include "trainer/config/config.h"

namespace dtrain {
TablePart::TablePart(const Config& config, const Layout& layout, int ps_index)
    : RowPart(config, layout, ps_index),
      rows_(EmptyRows(config, *layout.table, layout.table->PartOf(ps_index))),
      pieces_(rows_.rows(), rows_.values()),
      changed_(config.checkpoint.delta > 0 ? rows_.unit_count() : 0),
      writer_(this->layout().width(), rows_.values()),
      initial_(static_cast<size_t>(rows_.values())) {
  rows_.Populate();
}

std::string TablePart::Put(int64_t number, net::TensorView piece) { return PutRows(number, piece); }

void TablePart::ClearRows() {
  snapshots_.DropAll();
  rows_.Clear();
}

// Rows that are as they were in the beginning are left out.
net::LentBytes TablePart::CopyRows(int64_t unit) {
  const RowRange range = UnitRows(unit);
  uint64_t group = rows_.GroupOf(range.begin);
  for (uint64_t row = range.begin; row < range.end; row += static_cast<uint64_t>(rows_.group_rows())) {
    const float* const values = rows_.Group(group++);
    if (values == nullptr) continue;
    uint64_t changed = rows_.ChangedIn(group - 1, values, rows_.values(), initial_.data());
    for (; changed != 0; changed &= changed - 1) {
      const auto i = static_cast<uint64_t>(__builtin_ctzll(changed));
      writer_.Add(row + i, values + i * initial_.size());
    }
  }
  const net::LentBuffer& copy = TakeUnit(writer_.MaxBytes());
  return copy.Lend(0, head_bytes() + writer_.Finish(range, BytesOf(copy) + head_bytes()));
}

std::string TablePart::PutRows(int64_t number, net::TensorView bytes) {
  const RowRange rows = pieces_.At(number);
  return ReadRowPiece(bytes, rows, layout().width(), rows_.values(), rows,
                      [this](uint64_t row, const float* values) {
                        if (!initialised()) std::copy_n(values, rows_.values(), rows_.Touch(row));
                      });
}

std::shared_ptr<Snapshot> TablePart::TakeSnapshot(SnapshotOf of) {
  const bool all = of == SnapshotOf::kAll;
  DT_CHECK(all || config().checkpoint.delta > 0);
  const auto taken = snapshots_.Add(std::make_shared<TableSnapshot>(
      rows_, layout().width(), UndoLimitsFor(config(), block_count(), MemoryLeft()),
      all ? std::vector<bool>() : changed_));
  if (all) changed_.assign(changed_.size(), false);
  return taken;
}

void TablePart::UpdateRows(int64_t, const UpdateStep& step, KeySpan keys, const std::byte* gradient) {
  std::vector<std::unique_lock<std::mutex>> locks;  // a reader of a snapshot sees no row that is half updated
  for (const auto& snapshot : snapshots_) locks.push_back(snapshot->BeforeUpdate(keys));
  if (!changed_.empty()) NoteChanges(keys);
  optimizer().Apply(step, keys, gradient, &rows_);
}

void TablePart::NoteChanges(KeySpan keys) {
  for (const uint64_t key : keys) changed_[rows_.UnitOf(key)] = true;
}

// Copies the weights of rows to [keys, width]. A row that was never written stays so. All rows of a tile are
// found, and on their way from memory, before the first is read.
void TablePart::ReadRows(KeySpan keys, float* weights) {
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

uint64_t TablePart::PackChanged(RowRange range, std::vector<std::byte>* rows) const {
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
