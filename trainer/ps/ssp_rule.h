// SspRule: bounded staleness (stale synchronous parallel, Ho et al., NIPS 2013). Each gradient is applied
// when it arrives; its answer waits until the worker is at most train.staleness gradients ahead of the
// slowest one. Every ps counts for itself, and per block: a worker's count on a block is the number of its
// gradients applied there. So the weights of an answer hold every gradient of every worker but its last
// `staleness`, whatever the number of ps. Workers that are done do not count, nor do lost ones, unless the
// run waits for them. One that comes later begins at the slowest's count, one that comes back and was waited
// for at its own: ps 0 says which when it starts the worker, and every ps takes that. Were it to differ
// between the ps, two workers could wait for each other, each at another ps.
//
// Where a host has more workers than processors for them, those that are answered first would only wait for a
// processor, and the weights that they wait with grow old: eight workers on two processors compute each
// gradient from weights that seven others have changed. So a worker is kept back, with the last block of its
// exchange, until its host has a processor for it (HasSlot()), and gets the weights of that moment.
#pragma once

#include <vector>

#include "trainer/ps/update_rule.h"

namespace dtrain {

// A worker that computes for longer than this waits for something else than a processor: others need not wait
// for it.
constexpr milliseconds kMaxSlot{10};

// Whether the host of the worker has a processor for it, or says nothing of its processors. A processor is
// taken from a worker's answer (Member::turn) to its gradient.
bool HasSlot(const TaskTable& members, const Member& worker, TimePoint now);

class SspRule : public UpdateRule {
 public:
  explicit SspRule(const PsParts& parts);
  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) override;
  void OnPull(Member& member, uint64_t request, const wire::Pull& pull) override;
  void OnRepeated(Member& member, uint64_t request, int64_t block) override;
  bool Waits(const Member& member, int64_t block) const override;
  void Left(Member& member) override;
  void Lost(Member& member) override;
  void Tick() override;
  uint64_t StartClock(Member& member) override;

 private:
  // One worker on one block.
  struct Clock {
    bool counts = false;
    int64_t gradients = 0;
    uint64_t held = 0;  // the request whose answer waits; 0: none
    TimePoint held_since;
  };

  size_t IndexOf(int worker, int64_t block) const {
    return static_cast<size_t>(block) * static_cast<size_t>(workers_) + static_cast<size_t>(worker);
  }
  Clock& At(int worker, int64_t block) { return clocks_[IndexOf(worker, block)]; }
  int64_t Slowest(int64_t block);
  void Enter(int worker, int64_t block, int64_t gradients);
  void EnterEverywhere(int worker, int64_t gradients);
  void AnswerWithinBound(int64_t block, int pusher);
  void AnswerHeld(int worker, int64_t block);
  // Where a worker is kept back until its host has a slot: at the end of its exchange with each ps. The ps
  // decide each for itself, from the same gradients in nearly the same order; where they differ, a slot is
  // freed by time.
  bool TakesSlots(int64_t block) const { return IsLast(block); }

  const int workers_;
  std::vector<Clock> clocks_;      // by block, then worker
  std::vector<int> within_bound_;  // kept to spare the allocation
  bool together_ = false;          // the workers that start together are known
};

}  // namespace dtrain
