#include "trainer/ps/ssp_rule.h"

#include <algorithm>
#include <limits>

namespace dtrain {

SspRule::SspRule(const PsParts& parts)
    : UpdateRule(parts),
      workers_(static_cast<int>(parts.config.cluster.worker.size())),
      clocks_(static_cast<size_t>(parts.shard.block_count()) * static_cast<size_t>(workers_)) {}

// The smallest count of those that count; without any, the largest number.
int64_t SspRule::Slowest(int64_t block) {
  int64_t slowest = std::numeric_limits<int64_t>::max();
  for (int worker = 0; worker < workers_; ++worker) {
    const Clock& clock = At(worker, block);
    if (clock.counts) slowest = std::min(slowest, clock.gradients);
  }
  return slowest;
}

void SspRule::Enter(int worker, int64_t block) {
  Clock& clock = At(worker, block);
  if (clock.counts) return;
  const int64_t slowest = Slowest(block);
  if (slowest != std::numeric_limits<int64_t>::max()) clock.gradients = slowest;
  clock.counts = true;
}

void SspRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  // The first list of those that start together is every list: nobody runs ahead while another's first pull
  // is still under way. A later copy could name one that has left since.
  if (!together_ && pull.workers() != nullptr) {
    together_ = true;
    for (const uint32_t worker : *pull.workers()) {
      const Member* other = parts_.members.Worker(static_cast<int64_t>(worker));
      if (other == nullptr || !other->here()) continue;
      for (int64_t block = 0; block < parts_.shard.block_count(); ++block) Enter(other->task.index, block);
    }
  }
  if (pull.enter()) Enter(member.task.index, pull.block());
  if (!pull.enter() && pull.block() == 0) Left(member);  // it evaluates, and must not hold up the others
  Answer(member, request, pull.block());
}

void SspRule::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const int64_t block = push.block();
  const net::TensorView gradient = net::Tensor(message, push);
  parts_.shard.Apply(block, gradient);
  Clock& clock = At(member.task.index, block);
  ++clock.gradients;
  clock.held = request;
  clock.held_since = TimePoint();
  if (IsLast(block)) {
    ++member.taken;
    if (parts_.coordinator != nullptr) parts_.coordinator->StepApplied(member, push.examples());
  }
  AnswerWithinBound(block);
  if (clock.held == request) clock.held_since = dtrain::Clock::now();  // read only where it has to wait
}

void SspRule::OnRepeated(Member& member, uint64_t request, int64_t block) {
  if (At(member.task.index, block).held != request) Answer(member, request, block);
}

bool SspRule::Waits(const Member& member, int64_t block) const {
  return clocks_[IndexOf(member.task.index, block)].held != 0;
}

// A step is granted with the answer, not before: one that waits would keep it from the slowest, which may be
// waiting for a step itself.
void SspRule::AnswerWithinBound(int64_t block) {
  const int64_t slowest = Slowest(block);
  const int64_t bound =
      std::min(slowest, std::numeric_limits<int64_t>::max() - parts_.config.train.staleness) +
      parts_.config.train.staleness;
  for (int worker = 0; worker < workers_; ++worker) {
    Clock& clock = At(worker, block);
    if (clock.held == 0 || clock.gradients > bound) continue;
    Member& member = *parts_.members.Worker(worker);
    const uint64_t request = clock.held;
    clock.held = 0;
    const bool waited = clock.held_since != TimePoint();
    if (IsLast(block) && parts_.coordinator != nullptr) {
      member.GrantOf(request) = parts_.coordinator->GrantNext(member);
    }
    Answer(member, request, block,
           waited ? dtrain::Clock::now() - clock.held_since : dtrain::Clock::duration());
  }
}

void SspRule::Left(Member& member) {
  if (member.task.role != Role::kWorker) return;
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) {
    Clock& clock = At(member.task.index, block);
    clock.counts = false;
    clock.held = 0;
    AnswerWithinBound(block);
  }
}

}  // namespace dtrain
