// HashPart: the rows of a hash table on one ps (model/table_layout.h), with their optimizer slots: those of
// the keys that came, as admission and eviction have it (table/hash_store.h). A key without a row reads as
// its initial values. Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/shard/hash_snapshot.h"
#include "trainer/shard/row_part.h"
#include "trainer/table/hash_store.h"

namespace dtrain {

class HashPart : public RowPart {
 public:
  HashPart(const Config& config, const Layout& layout, int ps_index);

  std::string Put(int64_t number, net::TensorView piece) override;
  using RowPart::TakeSnapshot;
  std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) override;
  void Drop(const std::shared_ptr<Snapshot>& snapshot) override;

  std::optional<TableFigures> Figures() const override;
  const HashStore& rows() const { return rows_; }

 private:
  // A unit has so many hash ranges: what a range does depends on all rows of it.
  static constexpr int64_t kUnitRanges = 2;

  void ClearRows() override;
  int64_t row_units() const override;
  RowRange UnitRows(int64_t unit) const override;
  net::LentBytes CopyRows(int64_t unit) override;
  std::string PutRows(int64_t unit, net::TensorView bytes) override;
  void ReadRows(KeySpan keys, float* weights) override;
  void UpdateRows(int64_t block, const UpdateStep& step, KeySpan keys, const std::byte* gradient) override;
  uint64_t PackChanged(RowRange range, std::vector<std::byte>* rows) const override;
  void KeepLeaving(const HashRow& row);

  HashStore rows_;
  Snapshots<HashSnapshot> snapshots_;
  std::vector<uint64_t> base_steps_;  // by block, its version at the latest snapshot of all; deltas may follow
  HashStore::Told keep_changing_;           // for the snapshot
  HashStore::Told keep_leaving_;            // for the version before
  // Rows that leave in an update, as they were.
  KeyList left_;
  std::vector<float> left_weights_;
  // Rows of a unit.
  std::vector<HashRow> copied_;
  HashRowList put_;
};

}  // namespace dtrain
