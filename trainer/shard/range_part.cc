#include "trainer/shard/range_part.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

constexpr int64_t kTile = 4096;
// Fewer values are summed by one thread. A hand-over costs more there; so it does where one gradient is
// applied, which a thread does at the rate of its memory (docs/performance.md, Many workers).
constexpr int64_t kMinToShare = 1 << 20;

// What a unit of a copy begins with; behind it are its values.
struct UnitHead {
  uint64_t version = 0;
  uint64_t has_previous = 0;
};

}  // namespace

RangePart::RangePart(const Config& config, const Layout& layout, int ps_index)
    : config_(config),
      layout_(layout),
      ps_index_(ps_index),
      range_(layout.ps.at(static_cast<size_t>(ps_index))),
      settings_(OptimizerOf(config.train, ModelHalf::kOther).values),
      optimizer_(MakeOptimizer(settings_, range_.size())),
      keeps_previous_(RoundsWaitForLost(config)),
      capacity_(static_cast<size_t>(BlockOf(range_, 0).size()) * sizeof(float)),
      snapshot_buffers_(std::make_shared<SnapshotBuffers>(
          capacity_, static_cast<size_t>(BlockCount(range_)) * (1 + optimizer_->Slots().size()))) {
  here_ = BlockCount(range_);
  for (int64_t i = 0; i < here_; ++i) blocks_.emplace_back(BlockOf(range_, i), capacity_);
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  if (config.device.threads > 1 && config.train.mode == TrainMode::kSync &&
      BlockOf(range_, 0).size() * workers >= kMinToShare) {
    team_.emplace(config.device.threads);
  }
  adders_.resize(team_ ? static_cast<size_t>(config.device.threads) : 1);
}

// Makes the optimizer anew if an unfinished restore has left values in its slots.
bool RangePart::Initialise(TimePoint until) {
  if (initialised_) return true;
  if (made_ == 0 && restoring_) optimizer_ = MakeOptimizer(settings_, range_.size());
  for (; made_ < blocks_.size(); ++made_) {
    if (Clock::now() >= until) return false;
    InitialValues(config_.model, layout_, blocks_[made_].range, blocks_[made_].weights.floats());
    blocks_[made_].checksum = Checksum(blocks_[made_], blocks_[made_].weights);
  }
  SetWhole();
  return true;
}

// A piece is one block of the weights or of a slot.
std::string RangePart::Put(int64_t number, net::TensorView piece) {
  const std::vector<Slot> slots = optimizer_->Slots();
  const auto [slot, elements] = RangePieceAt(range_, static_cast<int64_t>(slots.size()), number);
  std::string wrong = WrongBytes(piece, elements);
  if (initialised_ || !wrong.empty() || piece.size == 0) return wrong;
  restoring_ = true;
  made_ = 0;
  float* const values = slot == 0 ? At(number / static_cast<int64_t>(1 + slots.size())).weights.floats()
                                  : slots[static_cast<size_t>(slot - 1)].values.data + elements.begin;
  std::memcpy(values, piece.data, piece.size);
  return wrong;
}

void RangePart::SetRestored(uint64_t version) {
  if (initialised_) return;
  for (Block& block : blocks_) {
    block.version = version;
    block.checksum = Checksum(block, block.weights);
  }
  SetWhole();
}

void RangePart::SetWhole() {
  here_ = block_count();
  initialised_ = true;
}

std::shared_ptr<Snapshot> RangePart::TakeSnapshot(SnapshotOf) {
  std::vector<net::LentBuffer> weights;
  for (Block& block : blocks_) {
    weights.push_back(block.weights.Share());
    block.in_snapshot = true;
  }
  std::vector<gpu::Span<const float>> slots;
  for (const Slot& slot : optimizer_->Slots()) slots.push_back(slot.values);
  return snapshots_.Add(
      std::make_shared<RangeSnapshot>(range_, std::move(weights), std::move(slots), snapshot_buffers_));
}

// `make(weights, updated)` writes the new version; both are one buffer when nobody reads the old version. Of
// a copy nothing is done to a block that is not here.
template <typename Make>
void RangePart::Update(int64_t index, Make&& make) {
  if (index >= here_) return;
  for (const auto& snapshot : snapshots_) snapshot->BeforeUpdate(index);
  Block& block = At(index);
  float* const weights = block.weights.floats();
  if (keeps_previous_) {
    net::LentBuffer& next = NextVersion(block);
    make(weights, next.floats());
    std::swap(block.weights, next);
    block.previous_checksum = block.checksum;
    block.previous_in_snapshot = block.in_snapshot;
  } else if (block.weights.lent()) {
    net::LentBuffer next = TakeSpare(block.in_snapshot);
    make(weights, next.floats());
    std::swap(block.weights, next);
    KeepSpare(std::move(next), block.in_snapshot);
  } else {
    make(weights, weights);
  }
  block.in_snapshot = false;
  ++block.version;
  block.checksum = Checksum(block, block.weights);
}

// Calls job(begin, end, adder) for parts of [0, size) that begin at tiles, on several threads if there are
// many values in the gradients.
template <typename Job>
void RangePart::Share(int64_t size, int64_t gradients, const Job& job) {
  if (!team_ || size * gradients < kMinToShare) return job(0, size, &adders_[0]);
  const auto members = static_cast<int64_t>(adders_.size());
  const int64_t tiles = (size + kTile - 1) / kTile;
  team_->Run([&](int64_t member) {
    const auto edge = [&](int64_t part) { return std::min(size, tiles * part / members * kTile); };
    job(edge(member), edge(member + 1), &adders_[static_cast<size_t>(member)]);
  });
}

void RangePart::Apply(int64_t index, const BlockGradient& gradient) {
  ApplyScaled(index, gradient.values, 1);
}

void RangePart::ApplyScaled(int64_t index, net::TensorView gradient, float scale) {
  const Block& block = At(index);
  DT_CHECK(gradient.size == block.bytes(), gradient.size, block.bytes());
  const UpdateStep step = StepAfter(block.version, scale);
  Update(index, [&](const float* weights, float* updated) {
    UpdateElements({step, block.range, weights, updated, gradient.data});
  });
}

// A worker that returns may still ask for the version before.
void RangePart::RepeatVersion(int64_t index) {
  if (!keeps_previous_) {
    ++At(index).version;
    return;
  }
  const size_t bytes = At(index).bytes();
  Update(index, [&](const float* weights, float* updated) { std::memcpy(updated, weights, bytes); });
}

void RangePart::ApplyMean(int64_t index, const RoundGradients& gradients, double scale) {
  if (gradients.empty()) return RepeatVersion(index);
  const auto factor = static_cast<float>(scale / gradients.Divisor(config_.train.reduce, &shares_));
  if (gradients.tensors.size() == 1) return ApplyScaled(index, gradients.tensors[0].values, factor);
  const Block& block = At(index);
  const UpdateStep step = StepAfter(block.version, factor);
  Update(index, [&](const float* weights, float* updated) {
    const auto count = static_cast<int64_t>(gradients.tensors.size());
    Share(block.range.size(), count, [&](int64_t begin, int64_t end, Adder* adder) {
      for (int64_t tile = begin; tile < end; tile += kTile) {
        const int64_t size = std::min(kTile, end - tile);
        const gpu::Span<float> sum = SumTile(gradients, tile, size, adder);
        const int64_t first = block.range.begin + tile;
        UpdateElements({step,
                        {first, first + size},
                        weights + tile,
                        updated + tile,
                        reinterpret_cast<const std::byte*>(sum.data)});
      }
    });
  });
}

RoundSum RangePart::SumOf(int64_t index, const RoundGradients& gradients, double scale) {
  if (gradients.empty()) return {};
  const auto factor = static_cast<float>(scale / gradients.Divisor(config_.train.reduce, &shares_));
  const Block& block = At(index);
  const net::LentBuffer& sum = sums_.Free(block.bytes());
  Share(block.range.size(), static_cast<int64_t>(gradients.tensors.size()),
        [&](int64_t begin, int64_t end, Adder* adder) {
          for (int64_t tile = begin; tile < end; tile += kTile)
            AddTile(gradients, tile, {sum.floats() + tile, std::min(kTile, end - tile)}, adder);
        });
  return {factor, {}, sum.Lend(0, block.bytes())};
}

void RangePart::ApplySum(int64_t index, const RoundSum& sum) {
  if (sum.values.data == nullptr) return RepeatVersion(index);
  ApplyScaled(index, {static_cast<const std::byte*>(sum.values.data), sum.values.size}, sum.factor);
}

// The buffer for the next version: that of the version before the previous one. The caller swaps the two.
net::LentBuffer& RangePart::NextVersion(Block& block) {
  if (!block.previous) block.previous.emplace(capacity_);
  if (block.previous->lent()) {
    net::LentBuffer next = TakeSpare(block.previous_in_snapshot);
    std::swap(*block.previous, next);
    KeepSpare(std::move(next), block.previous_in_snapshot);
  }
  return *block.previous;
}

void RangePart::AddSquaresOfMean(int64_t index, const RoundGradients& gradients, gpu::SquareSum* sum) {
  const int64_t values = At(index).range.size();
  if (gradients.empty()) return;
  Adder& adder = adders_[0];
  const auto divisor = static_cast<float>(gradients.Divisor(config_.train.reduce, &shares_));
  if (gradients.tensors.size() == 1) {
    return gpu::AddSquares(adder.stream, gradients.tensors[0].values.data, values, sum);
  }
  for (int64_t begin = 0; begin < values; begin += kTile) {
    const gpu::Span<float> mean = SumTile(gradients, begin, std::min(kTile, values - begin), &adder);
    if (divisor != 1) gpu::Scale(adder.stream, 1 / divisor, mean);
    gpu::AddSquares(adder.stream, reinterpret_cast<const std::byte*>(mean.data), mean.size, sum);
  }
}

// The sum of elements [begin, begin + size) of a block; valid until the next call with the same adder.
gpu::Span<float> RangePart::SumTile(const RoundGradients& gradients, int64_t begin, int64_t size,
                                    Adder* by) const {
  by->sum.resize(static_cast<size_t>(kTile));
  const gpu::Span<float> sum{by->sum.data(), size};
  AddTile(gradients, begin, sum, by);
  return sum;
}

// The same, written to `sum`, which has at most kTile elements.
void RangePart::AddTile(const RoundGradients& gradients, int64_t begin, gpu::Span<float> sum,
                        Adder* by) const {
  const size_t from = static_cast<size_t>(begin) * sizeof(float),
               bytes = static_cast<size_t>(sum.size) * sizeof(float);
  by->inputs.resize(gradients.tensors.size());
  for (size_t i = 0; i < by->inputs.size(); ++i) {
    const net::TensorView gradient = gradients.tensors[i].values;
    DT_CHECK(from + bytes <= gradient.size, from, bytes, gradient.size);
    by->inputs[i] = gradient.data + from;
  }
  shares_.empty() ? gpu::Sum(by->stream, by->inputs, sum) : AddWeighted(sum, by);
}

void RangePart::AddWeighted(gpu::Span<float> sum, Adder* by) const {
  by->copies.resize(by->inputs.size() * static_cast<size_t>(kTile));
  by->copied.resize(by->inputs.size());
  for (size_t i = 0; i < by->inputs.size(); ++i) {
    float* const copy = by->copies.data() + i * static_cast<size_t>(kTile);
    std::memcpy(copy, by->inputs[i], static_cast<size_t>(sum.size) * sizeof(float));
    by->copied[i] = copy;
  }
  gpu::WeightedSum(by->stream, by->copied, shares_, sum);
}

// `in_snapshot`: the version in the replaced buffer is in a snapshot.
net::LentBuffer RangePart::TakeSpare(bool in_snapshot) {
  if (in_snapshot) return snapshot_buffers_->Take();
  for (net::LentBuffer& spare : spares_) {
    if (spare.lent()) continue;
    std::swap(spare, spares_.back());
    net::LentBuffer taken = std::move(spares_.back());
    spares_.pop_back();
    return taken;
  }
  return net::LentBuffer(capacity_);
}

// Keeps a buffer. When a snapshot shares its version, the last user returns it to the snapshot buffers.
void RangePart::KeepSpare(net::LentBuffer buffer, bool in_snapshot) {
  if (in_snapshot) return snapshot_buffers_->Give(std::move(buffer));
  spares_.push_back(std::move(buffer));
}

uint64_t RangePart::Checksum(const Block& block, const net::LentBuffer& weights) const {
  return config_.net.checksum ? net::PayloadChecksum(weights.floats(), block.bytes()) : 0;
}

// Where the values of a unit are, in their order: the weights, each slot, and the version before if there is
// one.
std::vector<float*> RangePart::UnitValues(const Block& block) {
  std::vector<float*> values{block.weights.floats()};
  for (const Slot& slot : optimizer_->Slots())
    values.push_back(slot.values.data + (block.range.begin - range_.begin));
  if (block.previous) values.push_back(block.previous->floats());
  return values;
}

net::LentBytes RangePart::CopyUnit(int64_t unit) {
  const Block& block = At(unit);
  const std::vector<float*> values = UnitValues(block);
  const size_t size = sizeof(UnitHead) + values.size() * block.bytes();
  const net::LentBuffer& copy = units_.Free(size);
  const UnitHead head{block.version, block.previous ? uint64_t{1} : 0};
  std::memcpy(copy.floats(), &head, sizeof head);
  float* to = copy.floats() + sizeof head / sizeof(float);
  for (const float* each : values) to = std::copy_n(each, block.range.size(), to);
  return copy.Lend(0, size);
}

// Initial values may follow: then the optimizer is made anew, and so are its slots.
void RangePart::BeginCopy() {
  snapshots_.DropAll();
  for (Block& block : blocks_) {
    block.version = 0;
    block.previous.reset();
    block.in_snapshot = block.previous_in_snapshot = false;
  }
  made_ = 0;
  restoring_ = true;
  here_ = 0;
  initialised_ = false;
}

std::string RangePart::PutUnit(int64_t unit, net::TensorView bytes) {
  Block& block = At(unit);
  UnitHead head;
  if (bytes.size < sizeof head) return fmt::format("it has {} bytes", bytes.size);
  std::memcpy(&head, bytes.data, sizeof head);
  if (head.version > kMaxVersion || head.has_previous > (keeps_previous_ ? 1 : 0)) return "its head is wrong";
  const size_t needed = sizeof head + (1 + optimizer_->Slots().size() + head.has_previous) * block.bytes();
  if (bytes.size != needed) return fmt::format("it has {} bytes, not {}", bytes.size, needed);
  if (block.weights.lent()) KeepSpare(std::exchange(block.weights, TakeSpare(false)), false);
  if (head.has_previous != 0) block.previous.emplace(capacity_);
  const std::byte* from = bytes.data + sizeof head;
  for (float* const each : UnitValues(block)) {
    std::copy_n(from, block.bytes(), reinterpret_cast<std::byte*>(each));
    from += block.bytes();
  }
  block.version = head.version;
  block.checksum = Checksum(block, block.weights);
  if (block.previous) block.previous_checksum = Checksum(block, *block.previous);
  here_ = unit + 1;
  if (here_ == block_count()) SetWhole();
  return "";
}

std::optional<ShardReport> RangePart::Report(TimePoint) {
  return ReportShard(layout_, ps_index_, [&](int64_t block) { return At(block).weights.floats(); });
}

}  // namespace dtrain
