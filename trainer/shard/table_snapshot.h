// TableSnapshot: the rows of a table on one ps as they were at one moment, while updates go on. Taking it
// copies nothing. The group of a row (table/row_store.h) is copied before the first update of it, unless its
// piece is read already; so memory is at most what was in use. Pieces: table/row_pieces.h.
// Owner: TableShard and its readers. Thread: BeforeUpdate() the ps loop, the other calls any. The lock is
// held while one piece is put together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "trainer/shard/snapshot.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_pieces.h"
#include "trainer/table/row_store.h"

namespace dtrain {

class TableSnapshot : public Snapshot {
 public:
  // `rows` are read until every piece is released. `width`: as in RowPieceWriter.
  TableSnapshot(const RowStore& rows, int64_t width);

  int64_t piece_count() const override { return pieces_.count(); }
  std::optional<Piece> Read(int64_t piece, float* scratch) const override;
  std::optional<net::LentBytes> Lend(int64_t piece) const override;
  void ReleaseBefore(int64_t piece) override;

  // Call this before rows change.
  void BeforeUpdate(KeySpan keys);

 private:
  size_t Write(int64_t piece, std::byte* bytes) const;
  const float* GroupAtTheMoment(uint64_t group) const;
  bool Has(int64_t piece) const { return piece >= released_ && piece < piece_count(); }

  const RowStore& rows_;
  const RowPieces pieces_;
  mutable std::mutex mutex_;     // guards what follows, and reading `rows_`
  std::vector<bool> is_copied_;  // by group
  // Groups that have changed, as they were; null: nothing of it was written. In order, so that those of a
  // released piece are found at once.
  std::map<uint64_t, std::unique_ptr<float[]>> copies_;
  mutable RowPieceWriter writer_;
  mutable std::vector<float> initial_;
  int64_t released_ = 0;  // all pieces before this one are released
};

}  // namespace dtrain
