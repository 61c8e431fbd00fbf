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
  const RowDesk::Keys keys = rows_.Find(member.task.index, block, request);
  if (keys == nullptr) return;  // it repeats its question, with the keys
  Shard& shard = parts_.shard;
  net::WeightsHead head;
  head.version = shard.version(block) - (previous ? 1 : 0);
  head.held_us = Micros(held);
  head.form = shard.FormOf(block, form);
  head.checksum = previous ? shard.previous_checksum(block) : shard.checksum(block);
  net::LentBytes weights = previous ? shard.LendPrevious(block, *keys) : shard.Lend(block, *keys);
  weights = shard.table(block) != nullptr ? TakeRows(weights, member, request, block, &head)
                                          : TakeRange(weights, block, &head);
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

net::LentBytes UpdateRule::TakeRows(const net::LentBytes& rows, const Member& member, uint64_t request,
                                    int64_t block, net::WeightsHead* head) {
  net::LentBytes taken = rows;
  if (head->form != net::Compression::kNone) {
    constexpr uint64_t kOfWeights = ~uint64_t{0};  // a gradient of the same request has other numbers
    const CounterRandom random = CounterRandom(static_cast<uint64_t>(member.task.index)).Stream(kOfWeights);
    taken = compressed_.TakeRows(rows, random.Stream(request).Bits(parts_.shard.BlockRows(block).begin));
  }
  if (parts_.config.net.checksum) head->checksum = net::PayloadChecksum(taken.data, taken.size);
  return taken;
}

net::LentBytes UpdateRule::TakeRange(const net::LentBytes& weights, int64_t block, net::WeightsHead* head) {
  if (head->form == net::Compression::kNone) return weights;
  const net::LentBytes compressed = compressed_.Take(block, head->version, weights);
  if (head->checksum != 0) head->checksum = net::PayloadChecksum(compressed.data, compressed.size);
  return compressed;
}

}  // namespace dtrain
