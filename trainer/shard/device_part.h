// DevicePart: a Part on a GPU (device_store.h). Updates are made in place and queued in the
// store's stream; the workers compute in the same stream, so each computation sees one version. Tensors in
// messages are device addresses. A snapshot copies the whole range at once, in the order of the stream. The
// previous version is not kept, because a lost thread does not come back.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "gpu/cuda/queue.h"
#include "gpu/ops.h"
#include "trainer/config/choices.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/shard/part.h"

namespace dtrain {

class DevicePart : public Part {
 public:
  // `store` outlives this.
  DevicePart(const Config& config, const Layout& layout, int ps_index, DeviceStore& store);

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

  int64_t block_count() const override { return static_cast<int64_t>(versions_.size()); }
  using Part::bytes;
  size_t bytes(int64_t, size_t) const override { return sizeof(DeviceAddress); }
  // An address stays one.
  net::Compression FormOf(net::Compression) const override { return net::Compression::kNone; }
  bool reads_values() const override { return false; }
  uint64_t version(int64_t block) const override { return versions_[static_cast<size_t>(block)]; }

  void Apply(int64_t block, const BlockGradient& gradient) override;
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) override;
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) override;

  // There are no replicas of parameters on a GPU.
  RoundSum SumOf(int64_t, const RoundGradients&, double) override { return {}; }
  void ApplySum(int64_t, const RoundSum&) override { DT_CHECK(false); }
  int64_t unit_count() const override { return 0; }
  net::LentBytes CopyUnit(int64_t) override { return {}; }
  void BeginCopy() override { DT_CHECK(false); }
  std::string PutUnit(int64_t, net::TensorView) override { return "it has no units"; }

  using Part::Lend;
  net::LentBytes Lend(int64_t block, KeySpan) override {
    return {&addresses_[static_cast<size_t>(block)], sizeof(DeviceAddress)};
  }

  using Part::Report;
  std::optional<ShardReport> Report(TimePoint) override;

 private:
  float* WeightsOf(Range elements) const { return store_.weights() + elements.begin; }
  void ApplyScaled(int64_t block, const float* gradient, float scale);
  gpu::Span<float> SumOf(int64_t block, const RoundGradients& gradients);
  const float* Fetch(const float* values, int64_t size) const;

  const Config& config_;
  const Layout& layout_;
  const int ps_index_;
  const Range range_;
  DeviceStore& store_;
  mutable gpu::cuda::Queue queue_;  // of the store's stream
  gpu::Stream stream_;
  const OptimizerConfig& settings_;  // of optimizer_
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<uint64_t> versions_;        // by block
  std::vector<DeviceAddress> addresses_;  // of the blocks' weights
  std::vector<const std::byte*> inputs_;  // of the sum below
  std::vector<const float*> floats_;      // the same
  std::vector<float> shares_;             // of the gradients in their mean; empty: the sum is plain
  gpu::cuda::Buffer<float> sum_;          // of one block's gradients
  mutable std::vector<float> fetched_;    // one block, in host memory
  std::shared_ptr<SnapshotBuffers> snapshot_buffers_;
  Snapshots<RangeSnapshot> snapshots_;
  int64_t made_ = 0;  // the blocks that have initial values
  bool restoring_ = false;
  bool initialised_ = false;
};

}  // namespace dtrain
