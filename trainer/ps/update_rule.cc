#include "trainer/ps/update_rule.h"

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

uint32_t Micros(Clock::duration duration) {
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(micros, 0, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

net::LentBytes CompressedWeights::Take(int64_t block, uint64_t version, const net::LentBytes& weights) {
  const auto count = static_cast<int64_t>(weights.size / sizeof(float));
  const size_t bytes = net::CompressedBytes(form_, count);
  Kept& kept = kept_[static_cast<size_t>(block)];
  if (kept.buffer == nullptr || kept.version != version) {
    kept.hold.reset();
    kept.buffer = &buffers_.Free(bytes);
    kept.hold = kept.buffer->KeepLent();
    kept.version = version;
    net::Compress(form_, static_cast<const float*>(weights.data), nullptr, count,
                  reinterpret_cast<std::byte*>(kept.buffer->floats()));
  }
  weights.release(const_cast<void*>(weights.data), weights.context);
  bytes_saved_ += weights.size - bytes;
  return kept.buffer->Lend(0, bytes);
}

net::LentBytes CompressedWeights::TakeRows(const net::LentBytes& rows, uint64_t seed) {
  const auto count = static_cast<int64_t>(rows.size / sizeof(float));
  const size_t bytes = net::CompressedBytes(form_, count);
  const net::LentBuffer& buffer = buffers_.Free(bytes);
  net::CompressAtRandom(form_, static_cast<const float*>(rows.data), seed, count,
                        reinterpret_cast<std::byte*>(buffer.floats()));
  rows.release(const_cast<void*>(rows.data), rows.context);
  bytes_saved_ += rows.size - bytes;
  return buffer.Lend(0, bytes);
}

UpdateRule::UpdateRule(const PsParts& parts)
    : parts_(parts),
      workers_(static_cast<int>(parts.config.cluster.worker.size())),
      rows_(parts.config, parts.shard),
      compressed_(parts.config.net.compress.pull, parts.shard.block_count()) {}

bool UpdateRule::waits_for_lost() const { return parts_.config.failure.worker_lost == WorkerLost::kWait; }

// Tells granted steps and leases, and asks for evaluations, with the last block of a step.
void UpdateRule::Send(Member& member, uint64_t request, int64_t block, net::Compression form,
                      Clock::duration held, bool previous) {
  if (parts_.outbox.mute()) return;  // of a replica
  const bool of_rows = parts_.shard.table(block) != nullptr;
  const RowDesk::Keys keys = of_rows ? rows_.Find(member.task.index, block, request) : nullptr;
  if (of_rows && keys == nullptr) return;  // it repeats its question, with the keys
  net::WeightsHead head;
  head.version = parts_.shard.version(block) - (previous ? 1 : 0);
  head.held_us = Micros(held);
  head.form = form;
  const net::LentBytes weights =
      of_rows ? TakeRows(*keys, member, request, block, previous, &head) : TakeRange(block, previous, &head);
  if (IsLast(block)) head.steps = member.GrantOf(request);
  if (ledger_ != nullptr) {
    head.global_step = static_cast<uint64_t>(ledger_->global_step());
    if (IsLast(block)) {
      head.evaluate = ledger_->EvaluationDueFor(member);
      head.lease = ledger_->LeaseFor(member);
    }
  }
  parts_.outbox.Weights(member.node, request, head, weights);
}

net::LentBytes UpdateRule::TakeRows(const KeyList& keys, const Member& member, uint64_t request,
                                    int64_t block, bool previous, net::WeightsHead* head) {
  Shard& shard = parts_.shard;
  net::LentBytes rows = previous ? shard.LendPrevious(block, keys) : shard.Lend(block, keys);
  if (head->form != net::Compression::kNone) {
    constexpr uint64_t kOfWeights = ~uint64_t{0};  // a gradient of the same request has other numbers
    const CounterRandom random = CounterRandom(static_cast<uint64_t>(member.task.index)).Stream(kOfWeights);
    rows = compressed_.TakeRows(rows, random.Stream(request).Bits(shard.BlockRows(block).begin));
  }
  if (parts_.config.net.checksum) head->checksum = net::PayloadChecksum(rows.data, rows.size);
  return rows;
}

net::LentBytes UpdateRule::TakeRange(int64_t block, bool previous, net::WeightsHead* head) {
  Shard& shard = parts_.shard;
  head->checksum = previous ? shard.previous_checksum(block) : shard.checksum(block);
  const net::LentBytes weights = previous ? shard.LendPrevious(block) : shard.Lend(block);
  // A tensor that is an address in a device's memory stays one.
  if (!shard.reads_values()) head->form = net::Compression::kNone;
  if (head->form == net::Compression::kNone) return weights;
  const net::LentBytes compressed = compressed_.Take(block, head->version, weights);
  if (head->checksum != 0) head->checksum = net::PayloadChecksum(compressed.data, compressed.size);
  return compressed;
}

}  // namespace dtrain
