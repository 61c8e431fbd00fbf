// Ranges whose values a test knows, from the same arithmetic on plain vectors.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "net/channel.h"
#include "trainer/model/model.h"
#include "trainer/shard/range_part.h"
#include "trainer/shard/shard_test_util.h"
#include "trainer/shard/snapshot.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

constexpr int64_t kThreeBlocks = 2 * kBlockValues + 1030;

using Values = std::vector<float>;

// A gradient of a block; neighbouring values differ.
inline Values Pattern() {
  Values values(kBlockValues);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1009) / 1009 - 0.4f;
  return values;
}

// `values` weights on one ps.
struct Job {
  Job(OptimizerKind kind, int64_t values, bool keeps_previous) : config(LinearCluster(1, 1, 100)) {
    config.model.inputs = values - 1;
    config.model.init.kind = InitKind::kConstant;
    config.model.init.value = 0.5;
    config.train.optimizer.kind = kind;
    config.train.optimizer.learning_rate = 0.1;
    config.net.checksum = false;
    if (keeps_previous) {
      config.train.mode = TrainMode::kSync;
      config.failure.worker_lost = WorkerLost::kWait;
    }
    layout = PlaceVariables(ModelVariables(config.model), 1, PlacementConfig());
  }
  Range range() const { return layout.ps[0]; }
  Config config;
  Layout layout;
};

// The same arithmetic on plain vectors, which are simply copied.
class PlainRange {
 public:
  explicit PlainRange(const Job& job)
      : range_(job.range()),
        optimizer_(MakeOptimizer(job.config, range_.size())),
        weights_(static_cast<size_t>(range_.size())),
        versions_(static_cast<size_t>(BlockCount(range_))) {
    InitialValues(job.config.model, job.layout, range_, weights_.data());
  }
  void Apply(int64_t block, const Values& gradient) {
    const Range where = BlockOf(range_, block);
    const UpdateStep step = {++versions_[static_cast<size_t>(block)], 1};
    float* const weights = weights_.data() + (where.begin - range_.begin);
    optimizer_->Apply(step, where.begin - range_.begin, weights, weights,
                      reinterpret_cast<const std::byte*>(gradient.data()), where.size());
  }
  // Copies the weights, then the slots.
  std::vector<Values> Copy() {
    std::vector<Values> all{weights_};
    for (const Slot& slot : optimizer_->Slots()) all.emplace_back(slot.values.begin(), slot.values.end());
    return all;
  }

 private:
  const Range range_;
  std::unique_ptr<Optimizer> optimizer_;
  Values weights_;
  std::vector<int64_t> versions_;
};

inline bool Same(const std::vector<Values>& copy, const RangePiece& where, const void* data, size_t size) {
  if (size != static_cast<size_t>(where.elements.size()) * sizeof(float)) return false;
  const float* const expected = copy[static_cast<size_t>(where.slot)].data() + where.elements.begin;
  return std::memcmp(expected, data, size) == 0;
}

inline bool SamePiece(const std::vector<Values>& copy, const Snapshot& snapshot, int64_t piece) {
  Values scratch(static_cast<size_t>(PieceOf(snapshot, piece).elements.size()));
  const std::optional<Snapshot::Held> read = snapshot.Read(piece, scratch.data());
  return read && Same(copy, PieceOf(snapshot, piece), read->bytes.data, read->bytes.size);
}

inline net::Frame FrameOver(const net::LentBytes& bytes) {
  return net::Frame::Lend(bytes.data, bytes.size, bytes.release, bytes.context);
}

}  // namespace dtrain
