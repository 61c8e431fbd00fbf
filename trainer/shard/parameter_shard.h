// ParameterShard: one contiguous range of the model's parameters and its optimizer slots, on one ps, in
// blocks (model/layout.h). Implementations: host_shard.h (host memory), device_shard.h (a GPU, when ps and
// workers are threads of one process), table_shard.h and hash_shard.h (rows of a table), joint_shard.h (a
// range and rows). Owner: PsServer. Thread: the ps loop, hence no lock. Invariant: version(block) is the
// number of gradients applied to the block since global step 0, across restores from checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/channel.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/shard/shard_report.h"
#include "trainer/shard/snapshot.h"
#include "trainer/table/hash_store.h"

namespace dtrain {

// Whether `bytes` of float32 fit into a slot (0: the weights) of a range from element `first` on.
inline bool FitsRange(Range range, size_t slots, uint64_t slot, uint64_t first, size_t bytes) {
  const auto size = static_cast<uint64_t>(range.size()),
             values = static_cast<uint64_t>(bytes / sizeof(float));
  return slot <= slots && bytes % sizeof(float) == 0 && first <= size && values <= size - first;
}

// BlockGradient: the values of one block of a gradient; of a table those of the rows `keys`.
struct BlockGradient {
  BlockGradient(net::TensorView of_block, gpu::Span<const uint64_t> of_rows = {})
      : values(of_block), keys(of_rows) {}
  net::TensorView values;
  gpu::Span<const uint64_t> keys;
};

// RoundGradients: one block of the gradients of a round, in the order in which they are summed.
struct RoundGradients {
  std::vector<BlockGradient> tensors;
  std::vector<uint32_t> rows;  // that each is the mean over; above 0

  void Clear() {
    tensors.clear();
    rows.clear();
  }
  // A gradient of no rows counts nothing.
  void Add(const BlockGradient& gradient, uint32_t of_rows) {
    if (of_rows == 0) return;
    tensors.push_back(gradient);
    rows.push_back(of_rows);
  }
  bool empty() const { return tensors.empty(); }
  // Returns what the sum of the gradients, each times its share, is divided by. `shares` are left empty where
  // the sum is plain: with kSum, whose gradients are sums themselves, and where all rows are equally many:
  // the mean is then the sum divided by their number, whose bits do not depend on how large a batch is.
  double Divisor(Reduce reduce, std::vector<float>* shares) const;
};

// SnapshotOf: what a snapshot has: everything, or of a table the groups of rows that have changed since the
// latest snapshot of everything (checkpoint.delta).
enum class SnapshotOf { kAll, kChanges };

class ParameterShard {
 public:
  virtual ~ParameterShard() = default;

  // Fills the range with initial values, block by block, until the time `until`; true when all blocks are
  // done. Once initialised(), neither this nor Restore() and SetRestored() change anything.
  virtual bool Initialise(TimePoint until) = 0;
  bool Initialise() { return Initialise(TimePoint::max()); }
  // A checkpoint is to be restored. What an earlier one that was given up has left in rows of a table is
  // forgotten: a row that the next one does not have is as it was in the beginning.
  virtual void BeginRestore() {}
  // Writes saved values to the elements from `first` on; they must fit. `slot`: 0 for the weights, then the
  // optimizer's slots in the order of slot_names(). Initialise() may still follow.
  virtual void Restore(int64_t slot, int64_t first, net::TensorView values);
  virtual bool Fits(uint64_t /*slot*/, uint64_t /*first*/, size_t /*bytes*/) const { return false; }
  // The same for a row of a table: its weights, then its slots.
  virtual void RestoreRow(uint64_t row, const float* values);
  virtual void RestoreHashRow(const HashRow& row);  // of a hash table
  // All of the range is restored: it is initialised and has `version`, below 2^62.
  virtual void SetRestored(uint64_t version) = 0;
  // UpdateStep::earlier and decay_steps, below 2^62, of all updates from now on.
  virtual void SetCounts(int64_t earlier, int64_t decay_steps) {
    earlier_updates_ = earlier;
    decay_steps_ = decay_steps;
  }
  virtual bool initialised() const = 0;

  // The optimizer's slots.
  virtual std::vector<std::string> slot_names() const = 0;
  // The range as it is now. The snapshot has its pieces until DropSnapshot() or the next TakeSnapshot();
  // readers on any thread may keep the object longer. kChanges is for a run with checkpoint.delta that has
  // taken one of kAll; a range of the flat vector is whole all the same.
  virtual std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) = 0;
  std::shared_ptr<Snapshot> TakeSnapshot() { return TakeSnapshot(SnapshotOf::kAll); }
  virtual void DropSnapshot() = 0;

  // The rows that a block is a part of; null: it is a part of the flat vector. Rows are behind those.
  virtual const TableLayout* table(int64_t /*block*/) const { return nullptr; }
  bool has_table() const { return range_blocks() < block_count(); }
  virtual RowRange BlockRows(int64_t /*block*/) const { return {}; }
  virtual int64_t block_count() const = 0;
  // The first of them, which are of the flat vector.
  virtual int64_t range_blocks() const { return block_count(); }
  // See InOrder().
  int64_t InOrder(int64_t i) const { return dtrain::InOrder(range_blocks(), i); }
  virtual size_t bytes(int64_t block) const = 0;  // of the block's values
  // The size of a tensor in a message: of its values, or of an address in a device's memory.
  virtual size_t tensor_bytes(int64_t block) const = 0;
  // Whether a tensor in a message holds values that this processor can read.
  virtual bool reads_values() const = 0;
  virtual uint64_t version(int64_t block) const = 0;

  // Applies one gradient's part of a block: exactly tensor_bytes(block) bytes, of a table the values of its
  // keys, at any alignment.
  virtual void Apply(int64_t block, const BlockGradient& gradient) = 0;
  // Applies the mean of `gradients` over all their rows (train.reduce: sum: their sum), times `scale`, as one
  // update, in one pass over memory. Without gradients it makes a new version of the same weights.
  virtual void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) = 0;
  void ApplyMean(int64_t block, const RoundGradients& gradients) { ApplyMean(block, gradients, 1); }
  // Adds the squares of that mean, or sum, to `sum`. Applies nothing.
  virtual void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) = 0;

  // The current version; send it exactly once.
  virtual net::LentBytes Lend(int64_t block) const = 0;
  // Whether the previous version is kept (RoundsWaitForLost).
  virtual bool has_previous(int64_t block) const = 0;
  virtual net::LentBytes LendPrevious(int64_t block) const = 0;
  // The same of rows of a table, copied out: [keys, width]. Send them exactly once.
  virtual net::LentBytes LendRows(int64_t block, gpu::Span<const uint64_t> keys);
  virtual net::LentBytes LendPreviousRows(int64_t block, gpu::Span<const uint64_t> keys);
  virtual uint64_t previous_checksum(int64_t block) const = 0;
  // xxh3 of the current version; 0 without net.checksum.
  virtual uint64_t checksum(int64_t block) const = 0;

  // Of a hash table: what there is of it now.
  virtual std::optional<TableFigures> Figures() const { return std::nullopt; }
  // The report on the current weights, which takes one pass over them. Over the rows of a table it works
  // until about `until`; unset: it has not ended, call it again. It begins anew after an update.
  virtual std::optional<ShardReport> Report(TimePoint until) = 0;
  ShardReport Report() { return *Report(TimePoint::max()); }

 protected:
  // The update that follows `version`.
  UpdateStep StepAfter(uint64_t version, float scale) const {
    return {static_cast<int64_t>(version) + 1, scale, true, earlier_updates_, decay_steps_};
  }

 private:
  int64_t earlier_updates_ = 0;
  int64_t decay_steps_ = 0;
};

}  // namespace dtrain
