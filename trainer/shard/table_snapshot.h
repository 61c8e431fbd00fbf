// TableSnapshot: the rows of a table on one ps as they were at one moment, while updates go on. Taking it
// copies nothing. A row is copied before its first update, unless its piece is released already; so memory is
// what was updated since the moment. Where that comes near its limit, updates wait, each a little, so
// that it lasts until the end of the reading. Pieces: table/row_pieces.h.
// Owner: TableShard and its readers. Thread: BeforeUpdate() the ps loop, the other calls any. The lock is
// held while some thousand rows are copied, and while rows are updated.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "trainer/shard/snapshot.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_pieces.h"
#include "trainer/table/row_store.h"
#include "trainer/table/row_undo.h"

namespace dtrain {

class TableSnapshot : public Snapshot {
 public:
  // The memory for rows as they were.
  static constexpr size_t kMaxUndoBytes = size_t{128} << 20;
  // The longest time that an update waits.
  static constexpr std::chrono::milliseconds kMaxWait{15};

  // `rows` are read until every piece is released. `width`: as in RowPieceWriter.
  TableSnapshot(const RowStore& rows, int64_t width, size_t max_undo_bytes = kMaxUndoBytes);

  int64_t piece_count() const override { return pieces_.count(); }
  std::optional<Piece> Read(int64_t piece, float* scratch) const override;
  std::optional<net::LentBytes> Lend(int64_t piece) const override;
  void ReleaseBefore(int64_t piece) override;
  SnapshotCost Cost() const override;

  // Call this before rows change, and hold the lock until they have.
  std::unique_lock<std::mutex> BeforeUpdate(KeySpan keys);

 private:
  std::optional<size_t> Write(int64_t piece, std::byte* bytes) const;
  bool CopySlice(int64_t piece, RowRange slice) const;
  int64_t SliceOf(uint64_t row) const {
    return static_cast<int64_t>((row - rows_.rows().begin) >> slice_bits_);
  }
  void Wait();
  void PlanNext(TimePoint now, size_t added);
  bool Has(int64_t piece) const { return piece >= released_ && piece < piece_count(); }

  const RowStore& rows_;
  const RowPieces pieces_;
  const int slice_bits_;  // 2^so many rows are copied at once
  const size_t max_bytes_;
  const TimePoint taken_;

  mutable std::mutex mutex_;  // guards what follows, and reading `rows_`
  RowUndo undo_;
  SnapshotCost cost_;
  int64_t released_ = 0;  // all pieces before this one are released
  TimePoint next_;        // no update before it

  mutable std::mutex reading_;  // guards what follows: a reader's memory
  mutable std::vector<float> copied_;     // the rows of a slice [rows, values]
  mutable std::vector<bool> is_written_;  // by group of it
  mutable RowPieceWriter writer_;
  mutable std::vector<float> initial_;
};

}  // namespace dtrain
