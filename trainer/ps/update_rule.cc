#include "trainer/ps/update_rule.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "trainer/ps/async_rule.h"
#include "trainer/ps/ssp_rule.h"
#include "trainer/ps/sync_rule.h"

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
  const ParameterShard& shard = parts_.shard;
  SendWeights(member, request, block, shard.version(block), shard.checksum(block), shard.Lend(block), held);
}

void UpdateRule::AnswerPrevious(Member& member, uint64_t request, int64_t block) {
  const ParameterShard& shard = parts_.shard;
  SendWeights(member, request, block, shard.version(block) - 1, shard.previous_checksum(block),
              shard.LendPrevious(block), {});
}

// Steps are granted, and evaluations asked for, with a step's last block.
void UpdateRule::SendWeights(Member& member, uint64_t request, int64_t block, uint64_t version,
                             uint64_t checksum, net::LentBytes weights, Clock::duration held) {
  const Coordinator* coordinator = parts_.coordinator;
  const auto global_step = static_cast<uint64_t>(coordinator != nullptr ? coordinator->global_step() : 0);
  const uint32_t steps = IsLast(block) ? member.GrantOf(request) : 0;
  const uint64_t evaluate =
      coordinator != nullptr && IsLast(block) ? coordinator->EvaluationDueFor(member) : 0;
  parts_.outbox.Weights(member.node, request, version, global_step, steps, checksum, weights, Micros(held),
                        evaluate);
}

std::unique_ptr<UpdateRule> MakeUpdateRule(const PsParts& parts) {
  switch (parts.config.train.mode) {
    case TrainMode::kAsync:
      return std::make_unique<AsyncRule>(parts);
    case TrainMode::kSsp:
      return std::make_unique<SspRule>(parts);
    case TrainMode::kSync:
      return std::make_unique<SyncRule>(parts);
  }
  DT_CHECK(false, static_cast<int>(parts.config.train.mode));
  return nullptr;
}

}  // namespace dtrain
