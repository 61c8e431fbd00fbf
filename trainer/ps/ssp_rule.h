// SspRule: bounded staleness (stale synchronous parallel, Ho et al., NIPS 2013). Each gradient is applied
// when it arrives; its answer waits until the worker is at most train.staleness gradients ahead of the
// slowest one. Every ps counts for itself and per block: a worker's count on a block is the number of its
// gradients applied there. So the weights of an answer hold every gradient of every worker but its last
// `staleness`, for any number of ps. Workers that are done do not count; lost ones count only when the run
// waits for them. A worker that comes later begins at the slowest count, one that was waited for at its own.
// ps 0 chooses the count when it starts the worker, and every ps uses it: if the ps disagreed, two workers
// could wait for each other at two of them.
//
// When a host has more workers than processors, the workers that are answered first would only wait for a
// processor while their weights grow old: eight workers on two processors compute each gradient from weights
// that seven others have changed. So the answer to the last block of an exchange is held back until the
// worker's host has a processor for it (HasSlot()), and then carries the weights of that moment.
#pragma once

#include <vector>

#include "trainer/ps/update_rule.h"

namespace dtrain {

// A worker that computes for longer than this waits for something other than a processor, and frees its slot.
constexpr milliseconds kMaxSlot{10};

// Whether the worker's host has a free processor or does not report its processors. A worker takes up a
// processor from its answer (Member::turn) to its gradient.
bool HasSlot(const TaskTable& members, const Member& worker, TimePoint now);

class SspRule : public UpdateRule {
 public:
  explicit SspRule(const PsParts& parts);
  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) override;
  void OnPull(Member& member, uint64_t request, const wire::Pull& pull) override;
  void OnRepeated(Member& member, uint64_t request, int64_t block) override;
  bool Waits(const Member& member, int64_t block) const override;
  void Left(Member& member) override;
  void Tick() override;
  uint64_t StartClock(Member& member) override;
  RuleOfWorker OfWorker(int worker) const override;
  void SetOfWorker(int worker, const RuleOfWorker& of) override;

 protected:
  void OnLost(Member& member) override;

 private:
  // The count of one worker on one block.
  struct Clock {
    bool counts = false;
    int64_t gradients = 0;
    uint64_t held = 0;  // the request whose answer waits; 0: none
    TimePoint held_since;
    bool may_wait = false;  // from a replica, which does not know whether the latest gradient was answered
  };

  Clock& At(int worker, int64_t block) { return clocks_[IndexOf(worker, block)]; }
  int64_t Slowest(int64_t block);
  void Enter(int worker, int64_t block, int64_t gradients);
  void EnterEverywhere(int worker, int64_t gradients);
  void AnswerWithinBound(int64_t block, int pusher);
  void AnswerHeld(int worker, int64_t block);
  // Whether answers wait for a slot at this block: at the end of the exchange with each ps. Each ps decides
  // for itself, from the same gradients in nearly the same order; where they differ, a slot is freed by time.
  bool TakesSlots(int64_t block) const { return IsLast(block); }

  std::vector<Clock> clocks_;      // by block, then worker
  std::vector<int> within_bound_;  // kept to spare the allocation
  bool together_ = false;          // the workers that start together are known
};

}  // namespace dtrain
