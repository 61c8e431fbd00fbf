#include "trainer/ps/ssp_rule.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr int kNobody = -1;

// Bounds a peer's number, so that a sum with it does not overflow.
int64_t Bounded(uint64_t clock) {
  return static_cast<int64_t>(std::min<uint64_t>(clock, std::numeric_limits<int64_t>::max() / 2));
}

}  // namespace

bool HasSlot(const TaskTable& members, const Member& worker, TimePoint now) {
  if (worker.at_once == 0) return true;
  const int64_t busy = std::count_if(members.all().begin(), members.all().end(), [&](const Member& other) {
    return other.turn && now - *other.turn < kMaxSlot && other.host == worker.host;
  });
  return busy < worker.at_once;
}

SspRule::SspRule(const PsParts& parts) : UpdateRule(parts), clocks_(blocks_of_all()) {}

// The smallest count of the workers that count; if there is none, the largest integer.
int64_t SspRule::Slowest(int64_t block) {
  int64_t slowest = std::numeric_limits<int64_t>::max();
  for (int worker = 0; worker < workers_; ++worker) {
    const Clock& clock = At(worker, block);
    if (clock.counts) slowest = std::min(slowest, clock.gradients);
  }
  return slowest;
}

void SspRule::Enter(int worker, int64_t block, int64_t gradients) {
  Clock& clock = At(worker, block);
  clock.gradients = gradients;
  clock.counts = true;
}

void SspRule::EnterEverywhere(int worker, int64_t gradients) {
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) Enter(worker, block, gradients);
}

// The worker counts here from now on, so that no other gets too far ahead before it has reached the other ps.
uint64_t SspRule::StartClock(Member& member) {
  const int64_t last = last_block();
  const Clock& own = At(member.task.index, last);
  const int64_t slowest = Slowest(last);
  const bool alone = slowest == std::numeric_limits<int64_t>::max();
  const int64_t begins = own.counts || alone ? own.gradients : slowest;
  EnterEverywhere(member.task.index, begins);
  return static_cast<uint64_t>(begins);
}

void SspRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  // The first list of workers that start together is the right one; a later list could name a worker that has
  // left since. They count from here on, so none runs ahead of another whose first pull is on its way.
  if (!together_ && pull.workers() != nullptr) {
    together_ = true;
    for (const uint32_t worker : *pull.workers()) {
      const Member* other = parts_.members.Worker(static_cast<int64_t>(worker));
      if (other == nullptr || !other->here()) continue;
      EnterEverywhere(other->task.index, 0);
    }
  }
  if (pull.enter()) Enter(member.task.index, pull.block(), Bounded(pull.clock()));
  if (pull.enter() && TakesSlots(pull.block())) member.turn = dtrain::Clock::now();
  if (IsDoneWithSteps(pull)) Left(member);
  AnswerPull(member, request, pull);
}

void SspRule::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const int64_t block = push.block();
  ApplyAlone(member, push, message);
  Clock& clock = At(member.task.index, block);
  ++clock.gradients;
  clock.may_wait = false;
  clock.held = request;
  clock.held_since = TimePoint();
  if (TakesSlots(block)) member.turn.reset();
  if (IsLast(block)) CountStep(member, push);
  AnswerWithinBound(block, member.task.index);
  if (clock.held == request) clock.held_since = dtrain::Clock::now();  // read only when it waits
}

void SspRule::OnRepeated(Member& member, uint64_t request, int64_t block) {
  Clock& clock = At(member.task.index, block);
  if (clock.held == request) return;
  if (!std::exchange(clock.may_wait, false)) return Answer(member, request, block);
  clock.held = request;
  clock.held_since = dtrain::Clock::now();
  AnswerWithinBound(block, member.task.index);
}

RuleOfWorker SspRule::OfWorker(int worker) const {
  RuleOfWorker of;
  of.together = together_;
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) {
    const Clock& clock = clocks_[IndexOf(worker, block)];
    of.clocks.emplace_back(static_cast<uint64_t>(clock.gradients), clock.counts);
    of.held.push_back(clock.held);
  }
  return of;
}

void SspRule::SetOfWorker(int worker, const RuleOfWorker& of) {
  together_ = of.together;
  for (size_t block = 0; block < of.clocks.size() && block < clocks_.size(); ++block) {
    Clock& clock = At(worker, static_cast<int64_t>(block));
    clock = Clock();
    clock.counts = of.clocks[block].counts();
    clock.gradients = Bounded(of.clocks[block].gradients());
    clock.may_wait = block >= of.held.size() || of.held[block] != 0;
  }
}

bool SspRule::Waits(const Member& member, int64_t block) const {
  return clocks_[IndexOf(member.task.index, block)].held != 0;
}

// Answers the pusher first, because its data is still in the caches; then the slowest first.
void SspRule::AnswerWithinBound(int64_t block, int pusher) {
  const int64_t slowest = Slowest(block);
  const int64_t bound =
      std::min(slowest, std::numeric_limits<int64_t>::max() - parts_.config.train.staleness) +
      parts_.config.train.staleness;
  within_bound_.clear();
  for (int worker = 0; worker < workers_; ++worker) {
    const Clock& clock = At(worker, block);
    if (clock.held != 0 && clock.gradients <= bound) within_bound_.push_back(worker);
  }
  if (within_bound_.empty()) return;  // true of most ticks
  const auto rank = [&](int worker) {
    return std::make_tuple(worker != pusher, At(worker, block).gradients, worker);
  };
  std::sort(within_bound_.begin(), within_bound_.end(),
            [&](int one, int other) { return rank(one) < rank(other); });
  const bool takes_slot = TakesSlots(block);
  const TimePoint now = takes_slot ? dtrain::Clock::now() : TimePoint();
  for (const int worker : within_bound_) {
    Member& member = *parts_.members.Worker(worker);
    if (takes_slot && !HasSlot(parts_.members, member, now)) continue;
    if (takes_slot) member.turn = now;
    AnswerHeld(worker, block);
  }
}

// Grants the step with the answer, not earlier: a worker that waits would keep the step from the slowest one,
// which may be waiting for a step itself.
void SspRule::AnswerHeld(int worker, int64_t block) {
  Member& member = *parts_.members.Worker(worker);
  Clock& clock = At(worker, block);
  const uint64_t request = std::exchange(clock.held, 0);
  const bool waited = clock.held_since != TimePoint();
  if (IsLast(block)) Grant(member, request);
  Answer(member, request, block,
         waited ? dtrain::Clock::now() - clock.held_since : dtrain::Clock::duration());
}

// Frees a slot that was held for too long, without a message.
void SspRule::Tick() {
  const int64_t last = last_block();
  if (TakesSlots(last)) AnswerWithinBound(last, kNobody);
}

void SspRule::OnLost(Member& member) {
  if (!waits_for_lost() || member.task.role != Role::kWorker) return Left(member);
  member.turn.reset();
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) At(member.task.index, block).held = 0;
}

void SspRule::Left(Member& member) {
  if (member.task.role != Role::kWorker) return;
  member.turn.reset();
  for (int64_t i = 0; i < parts_.shard.block_count(); ++i) {
    const int64_t block = parts_.shard.InOrder(i);  // in which workers await the answers
    Clock& clock = At(member.task.index, block);
    clock.counts = false;
    clock.held = 0;
    AnswerWithinBound(block, kNobody);
  }
}

}  // namespace dtrain
