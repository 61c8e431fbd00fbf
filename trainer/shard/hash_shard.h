// HashShard: the rows of a hash table on one ps (model/table_layout.h), with their optimizer slots: those of
// the keys that came, as admission and eviction have it (table/hash_store.h). A key without a row reads as
// its initial values. Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/shard/hash_snapshot.h"
#include "trainer/shard/row_shard.h"
#include "trainer/table/hash_store.h"

namespace dtrain {

class HashShard : public RowShard {
 public:
  HashShard(const Config& config, const Layout& layout, int ps_index);
  ~HashShard() override { DropSnapshot(); }
  HashShard(const HashShard&) = delete;
  HashShard& operator=(const HashShard&) = delete;

  void RestoreHashRow(const HashRow& row) override;
  using RowShard::TakeSnapshot;
  std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) override;
  void DropSnapshot() override;

  std::optional<TableFigures> Figures() const override;
  const HashStore& rows() const { return rows_; }

 private:
  void ClearRows() override { rows_.Clear(); }
  void ReadRows(KeySpan keys, float* weights) override;
  void UpdateRows(int64_t block, const UpdateStep& step, KeySpan keys, const std::byte* gradient) override;
  uint64_t PackChanged(RowRange range, std::vector<std::byte>* rows) const override;
  void KeepLeaving(const HashRow& row);

  HashStore rows_;
  std::shared_ptr<HashSnapshot> snapshot_;  // null: none
  std::vector<uint64_t> snapshot_steps_;    // by block, the version that it is of
  std::vector<uint64_t> base_steps_;        // the same of the latest snapshot of all that deltas may follow
  HashStore::Told keep_changing_;           // for the snapshot
  HashStore::Told keep_leaving_;            // for the version before
  // Rows that leave in an update, as they were.
  KeyList left_;
  std::vector<float> left_weights_;
};

}  // namespace dtrain
