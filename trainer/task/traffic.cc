#include "trainer/task/traffic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/held_out.h"
#include "trainer/table/key_list.h"

namespace dtrain {
namespace {

int64_t Size(const net::Message& message) {
  return static_cast<int64_t>(message.header.size() + message.payload.size());
}

// The gradients of one record for a replica: in sync those of a round, whose sum it has; 0: it has one as it
// came.
int64_t GradientsOfSum(const Config& config) {
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  return config.train.mode == TrainMode::kSync ? config.train.aggregate.value_or(workers) : 0;
}

// The head of such a sum.
net::RoundHead SumHead(int64_t block, int64_t gradients) {
  net::RoundHead head;
  head.block = static_cast<uint32_t>(block);
  head.number = 1;
  head.what = wire::RoundRecord::Sum;
  head.factor = 0.5f;
  head.exchanges.resize(static_cast<size_t>(gradients));
  return head;
}

// Gauge: encodes the messages of a run; its numbers are not 0, since a 0 takes no bytes.
class Gauge {
 public:
  Gauge(const Config& config, const Layout& layout, int ps)
      : range_(layout.ps[static_cast<size_t>(ps)]),
        checksum_(config.net.checksum ? 1 : 0),
        compress_(config.net.compress),
        coordinates_(ps == 0),
        sum_of_(GradientsOfSum(config)) {
    values_.resize(static_cast<size_t>(BlockOf(range_, 0).size()));
  }

  int64_t Push() {
    return OfAllBlocks([this](int64_t i) {
      const bool is_counted = coordinates_ && i == 0;
      const std::optional<float> loss = is_counted ? std::optional(1.0f) : std::nullopt;
      return encoder_.Push(kEnvelope, static_cast<uint32_t>(i), 1, checksum_, Block(i, compress_.push), 0,
                           loss, {}, compress_.push);
    });
  }
  // What goes to a replica for one gradient.
  double Record() {
    const int64_t bytes = OfAllBlocks([this](int64_t i) {
      if (sum_of_ > 0) {
        return encoder_.Round(kEnvelope, SumHead(i, sum_of_), Block(i, net::Compression::kNone));
      }
      return encoder_.Push(kEnvelope, static_cast<uint32_t>(i), 1, checksum_, Block(i, compress_.push), 0, {},
                           {}, compress_.push, false, {1, 1});
    });
    return static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, sum_of_));
  }
  int64_t Pull() {
    return OfAllBlocks([this](int64_t i) {
      return encoder_.Finish(kEnvelope, wire::CreatePull(encoder_.Begin(), static_cast<uint32_t>(i)));
    });
  }
  // The weights that a step is taken with. `granted`: the steps granted with the last block.
  int64_t Weights(uint32_t granted) { return Weights(granted, compress_.pull); }
  // Those of an evaluation, which has no step.
  int64_t FullWeights() { return Weights(0, net::Compression::kNone); }

 private:
  int64_t Weights(uint32_t granted, net::Compression form) {
    return OfAllBlocks([&](int64_t i) {
      const uint32_t steps = coordinates_ && i == 0 ? granted : 0;
      return encoder_.Weights(kEnvelope, {1, coordinates_ ? 1u : 0u, steps, checksum_, 0, 0, form},
                              Block(i, form));
    });
  }

  static constexpr net::Envelope kEnvelope{1, 0, 1};

  // Only the first block, whose number 0 takes no bytes and which ends an exchange (InOrder), and the last
  // one, which may be shorter, differ from the others.
  template <typename Make>
  int64_t OfAllBlocks(Make&& make) const {
    const int64_t blocks = BlockCount(range_);
    int64_t bytes = Size(make(0));
    if (blocks > 1) bytes += Size(make(blocks - 1));
    if (blocks > 2) bytes += (blocks - 2) * Size(make(1));
    return bytes;
  }

  net::LentBytes Block(int64_t i, net::Compression form) const {
    return {values_.data(), net::CompressedBytes(form, BlockOf(range_, i).size())};
  }

  const Range range_;
  const uint64_t checksum_;
  const CompressConfig compress_;
  const bool coordinates_;
  const int64_t sum_of_;
  std::vector<float> values_;  // of the largest block
  net::Encoder encoder_;
};

// RowGauge: the same of a table, whose messages have the rows that a batch touches.
class RowGauge {
 public:
  RowGauge(const Config& config, const Layout& layout, int ps, double keys)
      : blocks_(layout.table->blocks_of_ps()),
        keys_(static_cast<size_t>(
            keys / static_cast<double>(layout.ps.size() * static_cast<size_t>(blocks_)) + 0.5)),
        rows_(layout.table->BlockOf(ps, 0)),
        width_(static_cast<size_t>(layout.table->width())),
        sum_of_(GradientsOfSum(config)),
        key_bytes_(PackedBytes(rows_, keys_)),
        push_form_(net::FormOfRows(config.net.compress.push)),
        pull_form_(config.net.compress.pull),
        push_bytes_(net::CompressedBytes(push_form_, static_cast<int64_t>(keys_) * layout.table->width())),
        pull_bytes_(net::CompressedBytes(pull_form_, static_cast<int64_t>(keys_) * layout.table->width())),
        checksum_(config.net.checksum ? 1 : 0),
        coordinates_(ps == 0),
        values_(net::kInlineBytes) {}

  // The gradient of the rows of a batch, and the keys of another one.
  int64_t Push() {
    const std::optional<float> loss = coordinates_ ? std::optional(1.0f) : std::nullopt;
    return blocks_ * Size(encoder_.Push(kEnvelope, 0, 1, checksum_, Lend(push_bytes_ + key_bytes_), 1, loss,
                                        {1, static_cast<uint32_t>(keys_), static_cast<uint32_t>(key_bytes_)},
                                        push_form_));
  }
  // What goes to a replica for one gradient: it and its keys. The gradients of a round are taken to have no
  // rows in common, which is the most.
  double Record() {
    if (sum_of_ == 0) {
      return static_cast<double>(
          blocks_ * Size(encoder_.Push(kEnvelope, 0, 1, checksum_, Lend(push_bytes_ + key_bytes_), 1, {},
                                       {1, static_cast<uint32_t>(keys_), static_cast<uint32_t>(key_bytes_)},
                                       push_form_, false, {1, 1})));
    }
    const size_t rows = keys_ * static_cast<size_t>(sum_of_), key_bytes = PackedBytes(rows_, rows);
    net::RoundHead head = SumHead(0, sum_of_);
    head.keys = static_cast<uint32_t>(rows);
    head.key_bytes = static_cast<uint32_t>(key_bytes);
    const int64_t sum =
        Size(encoder_.Round(kEnvelope, head, Lend(rows * width_ * sizeof(float) + key_bytes)));
    return static_cast<double>(blocks_ * sum) / static_cast<double>(sum_of_) + static_cast<double>(Pull());
  }
  int64_t Pull() {
    net::PullHead head;
    head.keys = static_cast<uint32_t>(keys_);
    return blocks_ * Size(encoder_.Pull(kEnvelope, head, Lend(key_bytes_)));
  }
  int64_t Weights(uint32_t granted) {
    return blocks_ * Size(encoder_.Weights(
                         kEnvelope,
                         {1, coordinates_ ? 1u : 0u, coordinates_ ? granted : 0, checksum_, 0, 0, pull_form_},
                         Lend(pull_bytes_)));
  }

 private:
  static constexpr net::Envelope kEnvelope{1, 0, 1};

  // Keys that are drawn evenly from the rows of a block, in messages: a group of 64 has as many bits each as
  // its largest gap, which is some 5 times the mean, and a byte.
  static size_t PackedBytes(RowRange block, size_t keys) {
    if (keys == 0) return 0;
    const double bits = 2.85 + std::log2(static_cast<double>(block.size()) / static_cast<double>(keys));
    return static_cast<size_t>(std::max(bits, 0.125) / 8 * static_cast<double>(keys) + 0.5);
  }
  // Larger values are not read.
  net::LentBytes Lend(size_t bytes) const { return {values_.data(), bytes, nullptr, nullptr}; }

  const int64_t blocks_;
  const size_t keys_;    // of a block
  const RowRange rows_;  // of it
  const size_t width_;
  const int64_t sum_of_;
  const size_t key_bytes_;  // of all of them, packed
  const net::Compression push_form_;
  const net::Compression pull_form_;
  const size_t push_bytes_;
  const size_t pull_bytes_;
  const uint64_t checksum_;
  const bool coordinates_;
  const std::vector<std::byte> values_;
  net::Encoder encoder_;
};

bool HasEvaluationSet(const Config& config) {
  return HoldsOut(config.data) || config.data.test.format != DataFormat::kNone;
}

// The pulls of all workers that evaluate, each over every ps.
int64_t EvaluationPulls(const Config& config, int workers) {
  int64_t pulls = 1;  // worker 0's, of the finished model
  if (!config.eval.at_end || !HasEvaluationSet(config)) return pulls;
  ++pulls;  // worker 0's, for the final evaluation
  return config.eval.by == EvalBy::kAll ? pulls + workers : pulls;
}

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  in += other.in;
  out += other.out;
  return *this;
}

Traffic operator*(double count, const Traffic& traffic) { return {count * traffic.in, count * traffic.out}; }

namespace {

template <typename Of>
Traffic StepOf(Of gauge) {
  return {static_cast<double>(gauge.Push()), static_cast<double>(gauge.Weights(1))};
}
template <typename Of>
Traffic PullOf(Of gauge) {
  return {static_cast<double>(gauge.Pull()), static_cast<double>(gauge.Weights(0))};
}

}  // namespace

namespace {

// What a ps sends to its replica for one gradient.
double RecordBytes(const Config& config, const Layout& layout, int ps, double keys) {
  double bytes = 0;
  if (RangeBlocksOf(layout, static_cast<size_t>(ps)) > 0) bytes += Gauge(config, layout, ps).Record();
  if (layout.table) bytes += RowGauge(config, layout, ps, keys).Record();
  return bytes;
}

// The weights and slots with which a replica begins. A table begins without rows.
double CopyBytes(const Config& config, const Layout& layout, int ps) {
  const size_t copies = 1 + SlotNames(config).size();
  return static_cast<double>(copies * sizeof(float)) *
         static_cast<double>(layout.ps[static_cast<size_t>(ps)].size());
}

}  // namespace

Traffic StepTraffic(const Config& config, const Layout& layout, int ps, double keys) {
  Traffic traffic;
  if (HasReplica(config)) traffic.out += RecordBytes(config, layout, ps, keys);
  if (const auto of = HeldReplica(config, ps)) traffic.in += RecordBytes(config, layout, *of, keys);
  if (RangeBlocksOf(layout, static_cast<size_t>(ps)) > 0) traffic += StepOf(Gauge(config, layout, ps));
  if (layout.table) traffic += StepOf(RowGauge(config, layout, ps, keys));
  return traffic;
}

// The coefficients: bench/push_cost for messages and values, bench/scale.py (docs/scale.md, c4) for rows.
double PushMicroseconds(const Layout& layout, int ps, bool local, double keys) {
  const double of_message = local ? 12 : 25, of_value = local ? 0.0012 : 0.003, of_row = 0.0213;
  const auto index = static_cast<size_t>(ps);
  double values = static_cast<double>(layout.ps[index].size()), rows = 0;
  if (layout.table) {
    rows = keys / static_cast<double>(layout.ps.size());
    values += rows * static_cast<double>(layout.table->width());
  }
  return of_message * static_cast<double>(BlocksOf(layout, index)) + of_value * values + of_row * rows;
}

Traffic RunTraffic(const Config& config, const Layout& layout, int ps, int workers, int64_t steps,
                   double keys) {
  Traffic traffic = static_cast<double>(steps) * StepTraffic(config, layout, ps, keys);
  if (HasReplica(config)) traffic.out += CopyBytes(config, layout, ps);
  if (const auto of = HeldReplica(config, ps)) traffic.in += CopyBytes(config, layout, *of);
  if (RangeBlocksOf(layout, static_cast<size_t>(ps)) > 0) {
    Gauge gauge(config, layout, ps);
    const Traffic evaluation{static_cast<double>(gauge.Pull()), static_cast<double>(gauge.FullWeights())};
    if (!layout.table) traffic += static_cast<double>(EvaluationPulls(config, workers)) * evaluation;
    traffic += static_cast<double>(workers) * PullOf(std::move(gauge));
  }
  if (layout.table) traffic += static_cast<double>(workers) * PullOf(RowGauge(config, layout, ps, keys));
  return traffic;
}

Traffic FeedTraffic(const Config& config, int64_t rows, bool as_bytes, double row_features) {
  net::BatchHead head = FedForm(config, rows, as_bytes, row_features);
  const auto bytes = static_cast<size_t>(FedBatchBytes(head, *config.model.inputs));
  const std::vector<std::byte> values(std::min(bytes, net::kInlineBytes));  // larger values are not read
  net::Encoder encoder;
  const net::Envelope envelope{1, 0, 1};
  head.local_step = head.epoch = head.batch_in_epoch = head.batches_per_epoch = 1;
  head.max_rows = head.rows;
  head.checksum = config.net.checksum ? 1 : 0;
  Traffic traffic;
  traffic.in = static_cast<double>(
      Size(encoder.Finish(envelope, wire::CreateNeedBatch(encoder.Begin(), 1, 1, true, 1))));
  traffic.out =
      static_cast<double>(Size(encoder.DataBatch(envelope, head, {values.data(), bytes, nullptr, nullptr})));
  return traffic;
}

}  // namespace dtrain
