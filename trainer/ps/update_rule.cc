#include "trainer/ps/update_rule.h"

#include <algorithm>
#include <limits>

namespace dtrain {
namespace {

uint32_t Micros(Clock::duration duration) {
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(micros, 0, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void UpdateRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  Answer(member, request, pull.block());
}

void UpdateRule::Answer(Member& member, uint64_t request, int64_t block, Clock::duration held) {
  ParameterShard& shard = parts_.shard;
  if (shard.table(block) == nullptr) {
    return SendWeights(member, request, block, shard.version(block), shard.checksum(block), shard.Lend(block),
                       held);
  }
  const RowDesk::Keys keys = rows_.Find(member.task.index, block, request);
  if (keys == nullptr) return;  // it repeats its question, with the keys
  SendRows(member, request, block, shard.version(block), shard.LendRows(block, *keys), held);
}

void UpdateRule::AnswerPrevious(Member& member, uint64_t request, int64_t block) {
  ParameterShard& shard = parts_.shard;
  const uint64_t version = shard.version(block) - 1;
  if (shard.table(block) == nullptr) {
    return SendWeights(member, request, block, version, shard.previous_checksum(block),
                       shard.LendPrevious(block), {});
  }
  const RowDesk::Keys keys = rows_.Find(member.task.index, block, request);
  if (keys == nullptr) return;
  SendRows(member, request, block, version, shard.LendPreviousRows(block, *keys), {});
}

void UpdateRule::SendRows(Member& member, uint64_t request, int64_t block, uint64_t version,
                          net::LentBytes rows, Clock::duration held) {
  const uint64_t checksum = parts_.config.net.checksum ? net::PayloadChecksum(rows.data, rows.size) : 0;
  SendWeights(member, request, block, version, checksum, rows, held);
}

// Grants steps and asks for evaluations with the last block of a step.
void UpdateRule::SendWeights(Member& member, uint64_t request, int64_t block, uint64_t version,
                             uint64_t checksum, net::LentBytes weights, Clock::duration held) {
  const Leader& leader = *parts_.leader;
  const auto global_step = static_cast<uint64_t>(leader.global_step());
  const uint32_t steps = IsLast(block) ? member.GrantOf(request) : 0;
  const uint64_t evaluate = IsLast(block) ? leader.EvaluationDueFor(member) : 0;
  parts_.outbox.Weights(member.node, request, version, global_step, steps, checksum, weights, Micros(held),
                        evaluate);
}

}  // namespace dtrain
