#include "trainer/shard/device_part.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/config/config.h"
#include "trainer/model/finite.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/shard/range_update.h"

namespace dtrain {
namespace {

int64_t BytesOf(int64_t values) { return values * static_cast<int64_t>(sizeof(float)); }

}  // namespace

DevicePart::DevicePart(const Config& config, const Layout& layout, int ps_index, DeviceStore& store)
    : config_(config),
      layout_(layout),
      ps_index_(ps_index),
      range_(layout.ps.at(static_cast<size_t>(ps_index))),
      store_(store),
      queue_(store.stream()),
      stream_(queue_),
      settings_(OptimizerOf(config.train, ModelHalf::kOther).values),
      optimizer_(MakeOptimizer(settings_, range_.size(), &queue_)),
      versions_(static_cast<size_t>(BlockCount(range_))),
      fetched_(static_cast<size_t>(BlockOf(range_, 0).size())),
      snapshot_buffers_(std::make_shared<SnapshotBuffers>(
          fetched_.size() * sizeof(float), versions_.size() * (1 + optimizer_->Slots().size()))) {
  for (int64_t i = 0; i < block_count(); ++i) addresses_.push_back(WeightsOf(BlockOf(range_, i)));
}

bool DevicePart::Initialise(TimePoint until) {
  if (initialised_) return true;
  if (made_ == 0 && restoring_) optimizer_ = MakeOptimizer(settings_, range_.size(), &queue_);
  for (; made_ < block_count(); ++made_) {
    if (Clock::now() >= until) return false;
    const Range block = BlockOf(range_, made_);
    InitialValues(config_.model, layout_, block, fetched_.data());
    queue_.Copy(WeightsOf(block), fetched_.data(), BytesOf(block.size()));
  }
  initialised_ = true;
  return true;
}

std::string DevicePart::Put(int64_t number, net::TensorView piece) {
  const std::vector<Slot> slots = optimizer_->Slots();
  const auto [slot, elements] = RangePieceAt(range_, static_cast<int64_t>(slots.size()), number);
  std::string wrong = WrongBytes(piece, elements);
  if (initialised_ || !wrong.empty()) return wrong;
  restoring_ = true;
  made_ = 0;
  float* const all = slot == 0 ? WeightsOf(range_) : slots[static_cast<size_t>(slot - 1)].values.data;
  queue_.Copy(all + elements.begin, piece.data, static_cast<int64_t>(piece.size));
  return wrong;
}

void DevicePart::SetRestored(uint64_t version) {
  if (initialised_) return;
  std::fill(versions_.begin(), versions_.end(), version);
  initialised_ = true;
}

// Never saves a value that is not finite: throws Diverged. A worker would notice it only a moment later.
std::shared_ptr<Snapshot> DevicePart::TakeSnapshot(SnapshotOf) {
  const std::vector<Slot> slots = optimizer_->Slots();
  const auto slot_count = static_cast<int64_t>(slots.size());
  std::vector<net::LentBuffer> pieces;
  for (int64_t i = 0; i < RangePieceCount(range_, slot_count); ++i) {
    const RangePiece piece = RangePieceAt(range_, slot_count, i);
    const float* const all =
        piece.slot == 0 ? WeightsOf(range_) : slots[static_cast<size_t>(piece.slot - 1)].values.data;
    pieces.push_back(snapshot_buffers_->Take());
    queue_.Copy(pieces.back().floats(), all + piece.elements.begin, BytesOf(piece.elements.size()));
    if (piece.slot > 0 || !config_.hooks.checks_finite()) continue;
    const Range elements{range_.begin + piece.elements.begin, range_.begin + piece.elements.end};
    const auto wrong =
        FirstNonFinite(layout_, elements, reinterpret_cast<const std::byte*>(pieces.back().floats()));
    if (wrong)
      throw Diverged(fmt::format("{}: at a checkpoint {}", TaskName({Role::kPs, ps_index_}), *wrong));
  }
  return snapshots_.Add(
      std::make_shared<RangeSnapshot>(range_, slot_count, std::move(pieces), snapshot_buffers_));
}

void DevicePart::Apply(int64_t block, const BlockGradient& gradient) {
  ApplyScaled(block, AddressIn(gradient.values), 1);
}

void DevicePart::ApplyScaled(int64_t index, const float* gradient, float scale) {
  uint64_t& version = versions_[static_cast<size_t>(index)];
  const Range block = BlockOf(range_, index);
  const UpdateStep step = StepAfter(version, scale);
  float* const weights = WeightsOf(block);
  const std::lock_guard order(store_.stream()->order());
  ApplyUpdate({step, block, weights, weights, reinterpret_cast<const std::byte*>(gradient)}, settings_,
              layout_, range_.begin, optimizer_.get());
  ++version;
}

void DevicePart::ApplyMean(int64_t index, const RoundGradients& gradients, double scale) {
  if (gradients.empty()) {
    ++versions_[static_cast<size_t>(index)];
    return;
  }
  const size_t count = gradients.tensors.size();
  const double divisor = gradients.Divisor(config_.train.reduce, &shares_);
  const float* const sum = count == 1 ? AddressIn(gradients.tensors[0].values) : SumOf(index, gradients).data;
  ApplyScaled(index, sum, static_cast<float>(scale / divisor));
}

// The exact sum uses integers that the device does not add, so the mean is fetched.
void DevicePart::AddSquaresOfMean(int64_t index, const RoundGradients& gradients, gpu::SquareSum* sum) {
  if (gradients.empty()) return;
  const int64_t size = BlockOf(range_, index).size();
  const float* mean = AddressIn(gradients.tensors[0].values);
  const size_t count = gradients.tensors.size();
  const double divisor = gradients.Divisor(config_.train.reduce, &shares_);
  if (count > 1) {
    const gpu::Span<float> total = SumOf(index, gradients);
    if (divisor != 1) gpu::Scale(stream_, 1 / static_cast<float>(divisor), total);
    mean = total.data;
  }
  gpu::Stream here;
  gpu::AddSquares(here, reinterpret_cast<const std::byte*>(Fetch(mean, size)), size, sum);
}

// Valid until the next call.
gpu::Span<float> DevicePart::SumOf(int64_t index, const RoundGradients& gradients) {
  if (sum_.data() == nullptr) {
    sum_ = gpu::cuda::Buffer<float>(queue_, static_cast<int64_t>(fetched_.size()), "a sum of gradients");
  }
  inputs_.clear();
  floats_.clear();
  for (const BlockGradient& gradient : gradients.tensors) {
    floats_.push_back(AddressIn(gradient.values));
    inputs_.push_back(reinterpret_cast<const std::byte*>(floats_.back()));
  }
  const gpu::Span<float> sum{sum_.data(), BlockOf(range_, index).size()};
  shares_.empty() ? gpu::Sum(stream_, inputs_, sum) : gpu::WeightedSum(stream_, floats_, shares_, sum);
  return sum;
}

std::optional<ShardReport> DevicePart::Report(TimePoint) {
  return ReportShard(layout_, ps_index_, [&](int64_t index) {
    const Range block = BlockOf(range_, index);
    return Fetch(WeightsOf(block), block.size());
  });
}

// Fetches at most one block; valid until the next call.
const float* DevicePart::Fetch(const float* values, int64_t size) const {
  queue_.Copy(fetched_.data(), values, BytesOf(size));
  return fetched_.data();
}

}  // namespace dtrain
