// ParameterShard: one contiguous range of the model's parameters on one ps, in blocks (model/blocks.h).
// Owner: PsServer. Thread: the ps loop only, hence no lock.
// Invariant: version(block) equals the number of gradients applied to that block since the initial values,
// those before a checkpoint that it was restored from included.
// A version that was lent to a reply is never written again: the next update goes to another buffer
// while that one is out, and in place otherwise. So a reply costs no copy. A cut (range_cut.h) shares the
// version that it was taken of in the same way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "gpu/ops.h"
#include "gpu/square_sum.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/ps/range_cut.h"

namespace dtrain {

// The checksum of the rows of one variable that a ps owns.
struct PartChecksum {
  std::string name;
  int64_t first_row = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C
};

class ParameterShard {
 public:
  ParameterShard(const Config& config, const Layout& layout, int ps_index);
  ~ParameterShard() { DropCut(); }
  ParameterShard(const ParameterShard&) = delete;
  ParameterShard& operator=(const ParameterShard&) = delete;

  // Fills the range with initial values, once, block by block until that time: true when all are made. When
  // initialised(), neither this nor the calls below change anything.
  bool Initialise(TimePoint until = TimePoint::max());
  // Instead, writes elements [first, ...) of the range (slot 0: the weights, then the optimizer's slots in
  // the order of slot_names()) as they were saved; they must fit. Initialise() may still follow.
  void Restore(int64_t slot, int64_t first, net::TensorView values);
  bool Fits(uint64_t slot, uint64_t first, size_t bytes) const;
  // All of the range was written: it is that of `version`, which is below 2^62, and initialised.
  void SetRestored(uint64_t version);
  bool initialised() const { return initialised_; }

  // Of the optimizer.
  std::vector<std::string> slot_names() const;
  // The range as it is now, until DropCut() or the next one. Shared with whoever reads it, on any thread, who
  // may keep it for longer: a dropped one has no pieces any more.
  std::shared_ptr<RangeCut> TakeCut();
  void DropCut();

  int64_t block_count() const { return static_cast<int64_t>(blocks_.size()); }
  size_t bytes(int64_t block) const { return At(block).bytes(); }
  uint64_t version(int64_t block) const { return At(block).version; }

  // A block's part of one gradient: exactly bytes(block) bytes, at any alignment.
  void Apply(int64_t block, net::TensorView gradient);
  // The mean of several times `scale`, as one update, in one pass over memory; of none: a new version of the
  // same weights.
  void ApplyMean(int64_t block, const std::vector<net::TensorView>& gradients, double scale = 1);
  // Adds the squares of that mean, of which nothing is applied.
  void AddSquaresOfMean(int64_t block, const std::vector<net::TensorView>& gradients, gpu::SquareSum* sum);

  // The current version, lent; to be sent exactly once.
  net::LentBytes Lend(int64_t block) const { return At(block).weights.Lend(0, bytes(block)); }
  // The version before the current one, where it is kept (RoundsWaitForLost) and there is one.
  bool has_previous(int64_t block) const { return At(block).previous.has_value(); }
  net::LentBytes LendPrevious(int64_t block) const { return At(block).previous->Lend(0, bytes(block)); }
  uint64_t previous_checksum(int64_t block) const { return At(block).previous_checksum; }
  // xxh3 of the current version, made when the version was; 0 unless net.checksum.
  uint64_t checksum(int64_t block) const { return At(block).checksum; }

  std::vector<PartChecksum> PartChecksums() const;
  // Buffers that are neither a block's nor a cut's, and those kept for the next cut.
  size_t spare_count() const { return spares_.size(); }
  size_t cut_buffer_count() const { return cut_buffers_->count(); }

 private:
  struct Block {
    Block(Range where, size_t capacity) : range(where), weights(capacity) {}
    size_t bytes() const { return static_cast<size_t>(range.size()) * sizeof(float); }
    Range range;
    net::LentBuffer weights;
    uint64_t version = 0;
    uint64_t checksum = 0;
    std::optional<net::LentBuffer> previous;
    uint64_t previous_checksum = 0;
    bool in_cut = false;  // a cut was taken of this version
    bool previous_in_cut = false;
  };

  Block& At(int64_t block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& At(int64_t block) const { return blocks_[static_cast<size_t>(block)]; }
  template <typename Make>
  void Update(int64_t index, Make&& make);
  void ApplyScaled(int64_t index, net::TensorView gradient, float scale);
  gpu::Span<float> SumOf(const std::vector<net::TensorView>& gradients, int64_t begin, int64_t size);
  net::LentBuffer TakeSpare(bool in_cut);
  void KeepSpare(net::LentBuffer buffer, bool in_cut);
  net::LentBuffer& NextVersion(Block& block);
  void RestoreWeights(int64_t first, net::TensorView values);
  void Checksum(Block& block);

  const Config& config_;
  const Layout& layout_;
  const int ps_index_;
  const Range range_;
  std::unique_ptr<Optimizer> optimizer_;
  const bool keeps_previous_;
  const size_t capacity_;  // of every buffer: that of the largest block, because they change places
  std::vector<Block> blocks_;
  std::vector<net::LentBuffer> spares_;      // bounded by the replies that can be out
  std::shared_ptr<CutBuffers> cut_buffers_;  // shared with cuts, which may outlive this
  std::shared_ptr<RangeCut> cut_;            // null: none
  gpu::Stream stream_{gpu::Backend::kCpu};
  std::vector<const std::byte*> inputs_;  // of the sum below; kept to spare the allocation
  std::vector<float> sum_;  // of a few gradients' elements at a time, while they are in the cache
  size_t made_ = 0;         // blocks that have initial values
  bool restoring_ = false;  // something was written by Restore()
  bool initialised_ = false;
};

}  // namespace dtrain
