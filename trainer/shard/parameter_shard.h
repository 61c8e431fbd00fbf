// ParameterShard: one contiguous range of the model's parameters on one ps, with the optimizer's slots, in
// blocks (model/layout.h). Implementations: host_shard.h (this machine's memory), device_shard.h (a GPU's,
// where ps and workers are threads of one process). Owner: PsServer. Thread: the ps loop only, hence no lock.
// Invariant: version(block) equals the number of gradients applied to that block since the initial values,
// those before a checkpoint that it was restored from included.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/shard/shard_report.h"
#include "trainer/shard/snapshot.h"

namespace dtrain {

// Whether `bytes` of float32 may be written to a slot (0: the weights) of a range from element `first` on.
inline bool FitsRange(Range range, size_t slots, uint64_t slot, uint64_t first, size_t bytes) {
  const auto size = static_cast<uint64_t>(range.size()),
             values = static_cast<uint64_t>(bytes / sizeof(float));
  return slot <= slots && bytes % sizeof(float) == 0 && first <= size && values <= size - first;
}

class ParameterShard {
 public:
  virtual ~ParameterShard() = default;

  // Fills the range with initial values, once, block by block until that time: true when all are made. When
  // initialised(), neither this nor the calls below change anything.
  virtual bool Initialise(TimePoint until) = 0;
  bool Initialise() { return Initialise(TimePoint::max()); }
  // Instead, writes elements [first, ...) of the range (slot 0: the weights, then the optimizer's slots in
  // the order of slot_names()) as they were saved; they must fit. Initialise() may still follow.
  virtual void Restore(int64_t slot, int64_t first, net::TensorView values) = 0;
  virtual bool Fits(uint64_t slot, uint64_t first, size_t bytes) const = 0;
  // All of the range was written: it is that of `version`, which is below 2^62, and initialised.
  virtual void SetRestored(uint64_t version) = 0;
  virtual bool initialised() const = 0;

  // Of the optimizer.
  virtual std::vector<std::string> slot_names() const = 0;
  // The range as it is now, until DropSnapshot() or the next one. Shared with whoever reads it, on any
  // thread, who may keep it for longer: a dropped one has no pieces any more.
  virtual std::shared_ptr<Snapshot> TakeSnapshot() = 0;
  virtual void DropSnapshot() = 0;

  virtual int64_t block_count() const = 0;
  virtual size_t bytes(int64_t block) const = 0;  // of its values
  // Of a tensor in a message: its values, or where in a device's memory they are.
  virtual size_t tensor_bytes(int64_t block) const = 0;
  // Whether a tensor in a message is its values, which this processor can read.
  virtual bool reads_values() const = 0;
  virtual uint64_t version(int64_t block) const = 0;

  // A block's part of one gradient: exactly tensor_bytes(block) bytes, at any alignment.
  virtual void Apply(int64_t block, net::TensorView gradient) = 0;
  // The mean of several times `scale`, as one update, in one pass over memory; of none: a new version of the
  // same weights.
  virtual void ApplyMean(int64_t block, const std::vector<net::TensorView>& gradients, double scale) = 0;
  void ApplyMean(int64_t block, const std::vector<net::TensorView>& gradients) {
    ApplyMean(block, gradients, 1);
  }
  // Adds the squares of that mean, of which nothing is applied.
  virtual void AddSquaresOfMean(int64_t block, const std::vector<net::TensorView>& gradients,
                                gpu::SquareSum* sum) = 0;

  // The current version, lent; to be sent exactly once.
  virtual net::LentBytes Lend(int64_t block) const = 0;
  // The version before the current one, where it is kept (RoundsWaitForLost) and there is one.
  virtual bool has_previous(int64_t block) const = 0;
  virtual net::LentBytes LendPrevious(int64_t block) const = 0;
  virtual uint64_t previous_checksum(int64_t block) const = 0;
  // xxh3 of the current version, made when the version was; 0 unless net.checksum.
  virtual uint64_t checksum(int64_t block) const = 0;

  // Of the weights as they are now: one pass over all of them.
  virtual ShardReport Report() const = 0;
};

}  // namespace dtrain
