#include "trainer/ps/parameter_shard.h"

#include "base/check.h"
#include "base/crc32c.h"
#include "trainer/model/model.h"

namespace dtrain {

ParameterShard::ParameterShard(const Config& config, const Layout& layout, int ps_index)
    : config_(config),
      layout_(layout),
      ps_index_(ps_index),
      range_(layout.ps.at(static_cast<size_t>(ps_index))),
      optimizer_(MakeOptimizer(config, range_.size())) {
  buffers_.emplace_back(bytes());
}

void ParameterShard::Initialise() {
  if (initialised_) return;
  InitialValues(config_.model, layout_, range_, current().floats());
  initialised_ = true;
  Checksum();
}

void ParameterShard::Apply(net::TensorView gradient) {
  DT_CHECK(gradient.size == bytes(), gradient.size, bytes());
  const size_t target = FreeBuffer();
  optimizer_->Apply(current().floats(), buffers_[target].floats(), gradient.data, range_.size());
  current_ = target;
  ++version_;
  Checksum();
}

size_t ParameterShard::FreeBuffer() {
  if (!current().lent()) return current_;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].lent()) return i;
  }
  buffers_.emplace_back(bytes());
  return buffers_.size() - 1;
}

void ParameterShard::Checksum() {
  if (config_.net.checksum) checksum_ = net::PayloadChecksum(current().floats(), bytes());
}

std::vector<PartChecksum> ParameterShard::PartChecksums() const {
  std::vector<PartChecksum> parts;
  for (const Segment& segment : layout_.SegmentsOf(ps_index_)) {
    const Variable& variable = layout_.variables[static_cast<size_t>(segment.variable)];
    const int64_t size = segment.rows * variable.cols * static_cast<int64_t>(sizeof(float));
    const float* values = current().floats() + (segment.offset - range_.begin);
    parts.push_back(
        {variable.name, segment.first_row, size, Crc32cExtend(0, values, static_cast<size_t>(size))});
  }
  return parts;
}

}  // namespace dtrain
