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
      rows_(parts.config, parts.shard),
      compressed_(parts.config.net.compress.pull, parts.shard.block_count()) {}

bool UpdateRule::waits_for_lost() const { return parts_.config.failure.worker_lost == WorkerLost::kWait; }

void UpdateRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  AnswerPull(member, request, pull);
}

void UpdateRule::Send(Member& member, uint64_t request, int64_t block, net::Compression form,
                      Clock::duration held) {
  ParameterShard& shard = parts_.shard;
  if (shard.table(block) == nullptr) {
    return SendRange(member, request, block, shard.version(block), shard.checksum(block), shard.Lend(block),
                     form, held);
  }
  const RowDesk::Keys keys = rows_.Find(member.task.index, block, request);
  if (keys == nullptr) return;  // it repeats its question, with the keys
  SendRows(member, request, block, shard.version(block), shard.LendRows(block, *keys), form, held);
}

void UpdateRule::AnswerPrevious(Member& member, uint64_t request, int64_t block) {
  ParameterShard& shard = parts_.shard;
  const uint64_t version = shard.version(block) - 1;
  if (shard.table(block) == nullptr) {
    return SendRange(member, request, block, version, shard.previous_checksum(block),
                     shard.LendPrevious(block), compressed_.form(), {});
  }
  const RowDesk::Keys keys = rows_.Find(member.task.index, block, request);
  if (keys == nullptr) return;
  SendRows(member, request, block, version, shard.LendPreviousRows(block, *keys), compressed_.form(), {});
}

void UpdateRule::SendRows(Member& member, uint64_t request, int64_t block, uint64_t version,
                          net::LentBytes rows, net::Compression form, Clock::duration held) {
  if (form != net::Compression::kNone) {
    constexpr uint64_t kOfWeights = ~uint64_t{0};  // a gradient of the same request has other numbers
    const CounterRandom random = CounterRandom(static_cast<uint64_t>(member.task.index)).Stream(kOfWeights);
    rows = compressed_.TakeRows(rows, random.Stream(request).Bits(parts_.shard.BlockRows(block).begin));
  }
  const uint64_t checksum = parts_.config.net.checksum ? net::PayloadChecksum(rows.data, rows.size) : 0;
  SendWeights(member, request, block, version, checksum, rows, form, held);
}

void UpdateRule::SendRange(Member& member, uint64_t request, int64_t block, uint64_t version,
                           uint64_t checksum, net::LentBytes weights, net::Compression form,
                           Clock::duration held) {
  // A tensor that is an address in a device's memory stays one.
  if (form == net::Compression::kNone || !parts_.shard.reads_values()) {
    return SendWeights(member, request, block, version, checksum, weights, net::Compression::kNone, held);
  }
  const net::LentBytes compressed = compressed_.Take(block, version, weights);
  if (checksum != 0) checksum = net::PayloadChecksum(compressed.data, compressed.size);
  SendWeights(member, request, block, version, checksum, compressed, form, held);
}

// Grants steps and asks for evaluations with the last block of a step.
void UpdateRule::SendWeights(Member& member, uint64_t request, int64_t block, uint64_t version,
                             uint64_t checksum, net::LentBytes weights, net::Compression form,
                             Clock::duration held) {
  const bool counts = ledger_ != nullptr;
  const auto global_step = counts ? static_cast<uint64_t>(ledger_->global_step()) : 0;
  const uint32_t steps = IsLast(block) ? member.GrantOf(request) : 0;
  const uint64_t evaluate = counts && IsLast(block) ? ledger_->EvaluationDueFor(member) : 0;
  parts_.outbox.Weights(member.node, request, version, global_step, steps, checksum, weights, Micros(held),
                        evaluate, form);
}

}  // namespace dtrain
