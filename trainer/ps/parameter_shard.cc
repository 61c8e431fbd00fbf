#include "trainer/ps/parameter_shard.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "trainer/model/blocks.h"
#include "trainer/model/model.h"

namespace dtrain {

ParameterShard::ParameterShard(const Config& config, const Layout& layout, int ps_index)
    : config_(config),
      layout_(layout),
      ps_index_(ps_index),
      range_(layout.ps.at(static_cast<size_t>(ps_index))),
      optimizer_(MakeOptimizer(config, range_.size())),
      capacity_(static_cast<size_t>(BlockOf(range_, 0).size()) * sizeof(float)) {
  for (int64_t i = 0; i < BlockCount(range_); ++i) blocks_.emplace_back(BlockOf(range_, i), capacity_);
}

void ParameterShard::Initialise() {
  if (initialised_) return;
  for (Block& block : blocks_) {
    InitialValues(config_.model, layout_, block.range, block.weights.floats());
    Checksum(block);
  }
  initialised_ = true;
}

void ParameterShard::Apply(int64_t index, net::TensorView gradient) {
  Block& block = blocks_[static_cast<size_t>(index)];
  DT_CHECK(gradient.size == block.bytes(), gradient.size, block.bytes());
  float* const weights = block.weights.floats();
  const UpdateStep step = {static_cast<int64_t>(block.version) + 1};
  const int64_t first = block.range.begin - range_.begin;
  if (block.weights.lent()) {
    net::LentBuffer& spare = FreeSpare();
    optimizer_->Apply(step, first, weights, spare.floats(), gradient.data, block.range.size());
    std::swap(block.weights, spare);
  } else {
    optimizer_->Apply(step, first, weights, weights, gradient.data, block.range.size());
  }
  ++block.version;
  Checksum(block);
}

net::LentBuffer& ParameterShard::FreeSpare() {
  for (net::LentBuffer& spare : spares_) {
    if (!spare.lent()) return spare;
  }
  return spares_.emplace_back(capacity_);
}

void ParameterShard::Checksum(Block& block) {
  if (config_.net.checksum) block.checksum = net::PayloadChecksum(block.weights.floats(), block.bytes());
}

std::vector<PartChecksum> ParameterShard::PartChecksums() const {
  std::vector<PartChecksum> parts;
  for (const Segment& segment : layout_.SegmentsOf(ps_index_)) {
    const Variable& variable = layout_.variables[static_cast<size_t>(segment.variable)];
    const int64_t end = segment.offset + segment.rows * variable.cols;
    PartChecksum part{variable.name, segment.first_row, 0, 0};
    for (const Block& block : blocks_) {
      const int64_t from = std::max(segment.offset, block.range.begin), to = std::min(end, block.range.end);
      if (from >= to) continue;
      const auto size = static_cast<size_t>(to - from) * sizeof(float);
      part.crc = Crc32cExtend(part.crc, block.weights.floats() + (from - block.range.begin), size);
      part.bytes += static_cast<int64_t>(size);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace dtrain
