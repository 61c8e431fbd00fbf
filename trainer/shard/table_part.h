// TablePart: the rows of a table on one ps (model/table_layout.h), with their optimizer slots. A row that
// was never written costs nothing and reads as its initial values. Owner: PsServer. Thread: the ps loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/shard/row_part.h"
#include "trainer/shard/table_snapshot.h"
#include "trainer/table/row_store.h"

namespace dtrain {

class TablePart : public RowPart {
 public:
  TablePart(const Config& config, const Layout& layout, int ps_index);

  using RowPart::TakeSnapshot;
  std::string Put(int64_t number, net::TensorView piece) override;
  std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) override;
  void Drop(const std::shared_ptr<Snapshot>& snapshot) override { snapshots_.Drop(snapshot); }

  // Rows whose group takes memory, and the bytes that all take.
  int64_t rows_written() const { return rows_.groups_written() * rows_.group_rows(); }

 private:
  void ClearRows() override;
  // A unit is a range of rows as that of a piece, and has its bytes.
  int64_t row_units() const override { return std::max<int64_t>(1, pieces_.count()); }
  RowRange UnitRows(int64_t unit) const override { return pieces_.At(unit); }
  net::LentBytes CopyRows(int64_t unit) override;
  std::string PutRows(int64_t unit, net::TensorView bytes) override;
  void ReadRows(KeySpan keys, float* weights) override;
  void UpdateRows(int64_t block, const UpdateStep& step, KeySpan keys, const std::byte* gradient) override;
  uint64_t PackChanged(RowRange range, std::vector<std::byte>* rows) const override;

  void NoteChanges(KeySpan keys);

  RowStore rows_;
  const RowPieces pieces_;
  // With checkpoint.delta, by unit: it has changed since the latest snapshot of all; else empty.
  std::vector<bool> changed_;
  Snapshots<TableSnapshot> snapshots_;
  RowPieceWriter writer_;       // of units
  std::vector<float> initial_;  // of a row that is compared
};

}  // namespace dtrain
