// RangePart: a Part in host memory. A version that is lent to a reply is never written again: while
// it is out, the next update goes to another buffer; otherwise the update is made in place. So a reply costs
// no copy. A snapshot (snapshot.h) shares its version in the same way.
// device.threads share the sums of large rounds; the bits do not depend on their number.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/ops.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/model/finite.h"
#include "trainer/model/layout.h"
#include "trainer/model/thread_team.h"
#include "trainer/optim/optimizer.h"
#include "trainer/shard/part.h"
#include "trainer/shard/range_update.h"
#include "trainer/shard/snapshot.h"

namespace dtrain {

class RangePart : public Part {
 public:
  RangePart(const Config& config, const Layout& layout, int ps_index);

  using Part::ApplyMean;
  using Part::Initialise;
  bool Initialise(TimePoint until) override;
  std::string Put(int64_t number, net::TensorView piece) override;
  void SetRestored(uint64_t version) override;
  bool initialised() const override { return initialised_; }

  using Part::TakeSnapshot;
  std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) override;
  void Drop(const std::shared_ptr<Snapshot>& snapshot) override { snapshots_.Drop(snapshot); }
  std::optional<net::LentBytes> LendOf(const Snapshot& snapshot, int64_t block, KeySpan) override {
    return snapshot.Lend(block * static_cast<int64_t>(1 + optimizer_->Slots().size()));
  }

  int64_t block_count() const override { return static_cast<int64_t>(blocks_.size()); }
  using Part::bytes;
  size_t bytes(int64_t block, size_t) const override { return At(block).bytes(); }
  uint64_t version(int64_t block) const override { return At(block).version; }

  void Apply(int64_t block, const BlockGradient& gradient) override;
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) override;
  RoundSum SumOf(int64_t block, const RoundGradients& gradients, double scale) override;
  void ApplySum(int64_t block, const RoundSum& sum) override;
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) override;

  std::optional<std::string> WhereNotFinite(int64_t block, const BlockGradient& gradient) const override {
    return FirstNonFinite(layout_, At(block).range, gradient.values.data);
  }

  // A unit is a block.
  int64_t unit_count() const override { return block_count(); }
  net::LentBytes CopyUnit(int64_t unit) override;
  void BeginCopy() override;
  std::string PutUnit(int64_t unit, net::TensorView bytes) override;

  using Part::Lend;
  net::LentBytes Lend(int64_t block, KeySpan) override { return At(block).weights.Lend(0, bytes(block)); }
  bool has_previous(int64_t block) const override { return At(block).previous.has_value(); }
  net::LentBytes LendPrevious(int64_t block, KeySpan) override {
    return At(block).previous->Lend(0, bytes(block));
  }
  uint64_t previous_checksum(int64_t block) const override { return At(block).previous_checksum; }
  uint64_t checksum(int64_t block) const override { return At(block).checksum; }

  using Part::Report;
  std::optional<ShardReport> Report(TimePoint) override;
  // Buffers that belong to no block and no snapshot, and those kept for the next snapshot.
  size_t spare_count() const { return spares_.size(); }
  size_t snapshot_buffer_count() const { return snapshot_buffers_->count(); }

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
    bool in_snapshot = false;  // a snapshot shares this version
    bool previous_in_snapshot = false;
  };

  // Adder: what one thread needs to sum a round's gradients, a few elements at a time, which stay in the
  // cache. Kept to spare the allocations.
  struct Adder {
    gpu::Stream stream;
    std::vector<const std::byte*> inputs;
    std::vector<float> sum;
    std::vector<float> copies;  // of the inputs, which may lie at any address
    std::vector<const float*> copied;
  };

  Block& At(int64_t block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& At(int64_t block) const { return blocks_[static_cast<size_t>(block)]; }
  template <typename Make>
  void Update(int64_t index, Make&& make);
  template <typename Job>
  void Share(int64_t size, int64_t gradients, const Job& job);
  void ApplyScaled(int64_t index, net::TensorView gradient, float scale);
  void RepeatVersion(int64_t index);
  gpu::Span<float> SumTile(const RoundGradients& gradients, int64_t begin, int64_t size, Adder* by) const;
  void AddTile(const RoundGradients& gradients, int64_t begin, gpu::Span<float> sum, Adder* by) const;
  void AddWeighted(gpu::Span<float> sum, Adder* by) const;
  void UpdateElements(const RangeUpdate& update) {
    ApplyUpdate(update, settings_, layout_, range_.begin, optimizer_.get());
  }
  net::LentBuffer TakeSpare(bool in_snapshot);
  void KeepSpare(net::LentBuffer buffer, bool in_snapshot);
  net::LentBuffer& NextVersion(Block& block);
  uint64_t Checksum(const Block& block, const net::LentBuffer& weights) const;
  std::vector<float*> UnitValues(const Block& block);
  void SetWhole();

  const Config& config_;
  const Layout& layout_;
  const int ps_index_;
  const Range range_;
  const OptimizerConfig& settings_;  // of optimizer_
  std::unique_ptr<Optimizer> optimizer_;
  const bool keeps_previous_;
  const size_t capacity_;  // of every buffer: the largest block's, because blocks exchange buffers
  std::vector<Block> blocks_;
  std::vector<net::LentBuffer> spares_;                // bounded by the replies that can be out
  std::shared_ptr<SnapshotBuffers> snapshot_buffers_;  // shared with snapshots, which may outlive this
  Snapshots<RangeSnapshot> snapshots_;
  net::LentBuffers sums_;           // bounded by the records that can be out
  net::LentBuffers units_;          // the same
  int64_t here_ = 0;                // of a copy: the blocks that are here
  std::optional<ThreadTeam> team_;  // unset: one thread sums
  std::vector<Adder> adders_;       // by member of the team
  std::vector<float> shares_;       // by gradient; empty: the sum is plain
  size_t made_ = 0;                 // the blocks that have initial values
  bool restoring_ = false;          // Put() has written something
  bool initialised_ = false;
};

}  // namespace dtrain
