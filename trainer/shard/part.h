// Part: one part of the parameters on a ps, with its optimizer slots, in blocks (model/layout.h). A ps has a
// list of them (shard.h). Kinds: range_part.h (a range of the flat vector in host memory), device_part.h (the
// same on a GPU, when ps and workers are threads of one process), table_part.h and hash_part.h (rows of a
// table). Blocks here are numbered from 0 in each part. Owner: Shard. Thread: the ps loop, hence no lock.
// Invariant: version(block) is the number of gradients applied to the block since global step 0, across
// restores from checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/channel.h"
#include "net/compress.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/shard/shard_report.h"
#include "trainer/shard/snapshot.h"
#include "trainer/table/hash_store.h"

namespace dtrain {

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
  std::vector<double>
      weights;  // of the rows that each is the mean over, their number if all weigh 1; above 0

  void Clear() {
    tensors.clear();
    weights.clear();
  }
  // A gradient of no rows, or of such that weigh nothing, counts nothing.
  void Add(const BlockGradient& gradient, double weight) {
    if (!(weight > 0)) return;
    tensors.push_back(gradient);
    weights.push_back(weight);
  }
  bool empty() const { return tensors.empty(); }
  // Returns what the sum of the gradients, each times its share, is divided by. `shares` are left empty where
  // the sum is plain: with kSum, whose gradients are sums themselves, and where all weigh the same:
  // the mean is then the sum divided by their number, whose bits do not depend on how large a batch is.
  double Divisor(Reduce reduce, std::vector<float>* shares) const;
};

// RoundSum: what a round changes of a block: the sum of its gradients, and the factor that makes it the mean.
struct RoundSum {
  float factor = 1;
  KeySpan keys = {};  // of a table: the rows of the sum; those of the gradients or of the part's next sum
  // float32, whose release is the receiver's to call; no data: no gradient counts.
  net::LentBytes values = {};
};

// SnapshotOf: what a snapshot has: everything, or of a table the groups of rows that have changed since the
// latest snapshot of everything (checkpoint.delta).
enum class SnapshotOf { kAll, kChanges };

// The max number of updates of a block.
constexpr uint64_t kMaxVersion = (uint64_t{1} << 62) - 1;

class Part {
 public:
  virtual ~Part() = default;

  // Fills the part with initial values, block by block, until the time `until`; true when all blocks are
  // done. Once initialised(), neither this nor Put() and SetRestored() change anything.
  virtual bool Initialise(TimePoint until) = 0;
  bool Initialise() { return Initialise(TimePoint::max()); }
  // A checkpoint is to be restored, at `version`, below 2^62. What an earlier one that was given up has left
  // in rows of a table is forgotten: a row that the next one does not have is as it was in the beginning.
  virtual void BeginRestore(uint64_t /*version*/) {}
  // Takes piece `number` of the checkpoint (checkpoint/part_pieces.h). Returns what is wrong with its bytes;
  // empty: nothing. Initialise() may still follow.
  virtual std::string Put(int64_t number, net::TensorView piece) = 0;
  // All of the part is restored: it is initialised and has `version`.
  virtual void SetRestored(uint64_t version) = 0;
  // UpdateStep::earlier and decay_steps, below 2^62, of all updates from now on.
  void SetCounts(int64_t earlier, int64_t decay_steps) {
    earlier_updates_ = earlier;
    decay_steps_ = decay_steps;
  }
  int64_t earlier_updates() const { return earlier_updates_; }
  int64_t decay_steps() const { return decay_steps_; }
  virtual bool initialised() const = 0;

  // The part as it is now. Snapshots do not know of each other. One has its pieces until Drop(); readers on
  // any thread may keep the object longer. kChanges is for a run with checkpoint.delta that has taken one of
  // kAll; a range of the flat vector is whole all the same.
  virtual std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) = 0;
  std::shared_ptr<Snapshot> TakeSnapshot() { return TakeSnapshot(SnapshotOf::kAll); }
  virtual void Drop(const std::shared_ptr<Snapshot>& snapshot) = 0;
  // The weights of a block as a snapshot of this part has them, of a table those of the rows `keys`; unset:
  // they are released. Send them exactly once.
  virtual std::optional<net::LentBytes> LendOf(const Snapshot& snapshot, int64_t block, KeySpan keys) = 0;

  // The table whose rows these are; null: it is a part of the flat vector.
  virtual const TableLayout* table() const { return nullptr; }
  virtual RowRange BlockRows(int64_t /*block*/) const { return {}; }
  virtual int64_t block_count() const = 0;
  // The size of a block's tensor, as it is applied and lent: of its values, of a table those of so many rows,
  // or of an address in a device's memory.
  virtual size_t bytes(int64_t block, size_t rows) const = 0;
  size_t bytes(int64_t block) const { return bytes(block, 0); }
  // The form of tensors in messages where `configured` is that of net.compress.
  virtual net::Compression FormOf(net::Compression configured) const { return configured; }
  // Whether a tensor in a message holds values that this processor can read.
  virtual bool reads_values() const { return true; }
  virtual uint64_t version(int64_t block) const = 0;

  // Applies one gradient's part of a block: exactly bytes() of them, at any alignment.
  virtual void Apply(int64_t block, const BlockGradient& gradient) = 0;
  // Applies the mean of `gradients` over all their rows (train.reduce: sum: their sum), times `scale`, as one
  // update, in one pass over memory. Without gradients it makes a new version of the same weights.
  virtual void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) = 0;
  void ApplyMean(int64_t block, const RoundGradients& gradients) { ApplyMean(block, gradients, 1); }
  // The same in two steps, for a ps with a replica: the sum, valid until the next call but for `values`,
  // which are lent; and its application, whose bits are those of ApplyMean(). Of a RoundSum without data it
  // makes a new version of the same weights.
  virtual RoundSum SumOf(int64_t block, const RoundGradients& gradients, double scale) = 0;
  virtual void ApplySum(int64_t block, const RoundSum& sum) = 0;
  // The first value of a gradient that is not finite, as "weights/W1[3, 5] is nan"; unset: all are, or they
  // are on a device, where a worker checks them.
  virtual std::optional<std::string> WhereNotFinite(int64_t /*block*/, const BlockGradient&) const {
    return std::nullopt;
  }
  // Adds the squares of that mean, or sum, to `sum`. Applies nothing.
  virtual void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) = 0;

  // The current version, of a table that of the rows `keys`, copied out: [keys, width]. Send it exactly once.
  virtual net::LentBytes Lend(int64_t block, KeySpan keys) = 0;
  net::LentBytes Lend(int64_t block) { return Lend(block, {}); }
  // Whether the previous version is kept (RoundsWaitForLost).
  virtual bool has_previous(int64_t /*block*/) const { return false; }
  virtual net::LentBytes LendPrevious(int64_t /*block*/, KeySpan /*keys*/) { return {}; }
  virtual uint64_t previous_checksum(int64_t /*block*/) const { return 0; }
  // xxh3 of the current version; 0 without net.checksum, and of rows.
  virtual uint64_t checksum(int64_t /*block*/) const { return 0; }

  // A copy of the part on another ps, while updates go on at both. The part is cut into units: a unit is
  // copied at one moment between two updates, with all that a later update of it depends on: weights, slots,
  // versions, the version before where it is kept; of a hash table whole hash ranges with candidates, counts
  // and steps. An update changes those units of the copy that are there already and counts for the others,
  // which come later and have it. Units are put in their order, from 0; with the last one the copy is
  // initialised(). Both parts are of the same layout and ps.
  virtual int64_t unit_count() const = 0;
  // The unit as it is now. It takes some milliseconds at most. Send it exactly once.
  virtual net::LentBytes CopyUnit(int64_t unit) = 0;
  // Forgets all: no unit is here, and snapshots have no pieces any more. Apply() and ApplySum() may follow.
  // Call it again to give up a copy: then initial values or a restore may follow. The first snapshot of a
  // copy is of kAll.
  virtual void BeginCopy() = 0;
  // Returns what is wrong with the bytes; empty: nothing.
  virtual std::string PutUnit(int64_t unit, net::TensorView bytes) = 0;

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
