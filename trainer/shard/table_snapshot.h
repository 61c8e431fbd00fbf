// TableSnapshot: the rows of a table on one ps as they were at one moment, while updates go on. Taking it
// copies nothing. A row is copied before its first update, unless its piece is released already; so memory is
// what was updated since the moment. Where that comes near its limit, updates wait, each a little, so that
// the limit lasts until the end of the reading; beyond a second limit the snapshot is given up. Pieces:
// table/row_pieces.h.
// Owner: TablePart and its readers. Thread: BeforeUpdate() the ps loop, the other calls any. The lock is
// held while some thousand rows are copied, and while rows are updated.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "trainer/config/choices.h"
#include "trainer/shard/snapshot.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_pieces.h"
#include "trainer/table/row_store.h"
#include "trainer/table/row_undo.h"

namespace dtrain {

// What rows as they were may take.
struct UndoLimits {
  size_t aim_bytes = size_t{128} << 20;                               // updates wait so that it stays below
  size_t max_bytes = size_t{1} << 30;                                 // beyond it the snapshot is given up
  std::chrono::nanoseconds max_wait = std::chrono::milliseconds(15);  // of one update
};

// The limits of a ps that has `left` bytes for itself and all of whose workers may send updates of `blocks`
// blocks.
UndoLimits UndoLimitsFor(const Config& config, int64_t blocks, size_t left);

// How long the next update waits after one that took `added` bytes: from half of the aim on, as much of the
// time until the end of the reading as it took of the memory that is left. `read`: the part of the pieces
// that is released, `passed` seconds after the moment.
std::chrono::nanoseconds WaitAfterUpdate(const UndoLimits& limits, size_t used, size_t added, double read,
                                         double passed_s);

class TableSnapshot : public Snapshot {
 public:
  // `rows` are read until every piece is released. `width`: as in RowPieceWriter. `changed`: by unit,
  // whether a delta has it; empty: the snapshot is of all.
  TableSnapshot(const RowStore& rows, int64_t width, const UndoLimits& limits = {},
                std::vector<bool> changed = {});

  int64_t piece_count() const override { return pieces_.count(); }
  std::optional<Held> Read(int64_t piece, float* scratch) const override;
  std::optional<net::LentBytes> Lend(int64_t piece) const override;
  void ReleaseBefore(int64_t piece) override;
  SnapshotCost Cost() const override;
  void LetUpdatesWait() override { updates_wait_ = true; }
  void KeepForEvaluation() override { keeps_all_ = true; }
  bool GoBack(KeySpan keys, float* weights) const override;

  // Call this before rows change, and hold the lock until they have.
  std::unique_lock<std::mutex> BeforeUpdate(KeySpan keys);

 private:
  std::optional<size_t> Write(int64_t piece, std::byte* bytes) const;
  bool CopySlice(int64_t piece, RowRange slice) const;
  int64_t SliceOf(uint64_t row) const {
    return static_cast<int64_t>((row - rows_.rows().begin) >> slice_bits_);
  }
  void Wait();
  void KeepRows(KeySpan keys);
  bool HasGroup(uint64_t group) const {
    if (changed_.empty()) return true;
    return changed_[group / static_cast<uint64_t>(rows_.unit_rows() / rows_.group_rows())];
  }
  bool Has(int64_t piece) const { return piece >= released_ && piece < piece_count(); }

  const RowStore& rows_;
  const int64_t width_;
  const RowPieces pieces_;
  const int slice_bits_;  // a slice, the rows that are copied at once, has 2^slice_bits_
  const UndoLimits limits_;
  const std::vector<bool> changed_;
  const TimePoint taken_;
  bool updates_wait_ = false;  // used by the ps loop
  bool keeps_all_ = false;     // as above: rows that a delta leaves out too

  mutable std::mutex mutex_;  // guards what follows, and reading `rows_`
  RowUndo undo_;
  SnapshotCost cost_;
  int64_t released_ = 0;  // all pieces before this one are released
  TimePoint next_;        // of the next update, at the earliest

  mutable std::mutex reading_;            // guards what follows: a reader's memory
  mutable std::vector<float> copied_;     // the rows of a slice [rows, values]
  mutable std::vector<bool> is_written_;  // by group of it, of those that the snapshot has
  mutable RowPieceWriter writer_;
  mutable std::vector<float> initial_;
};

}  // namespace dtrain
