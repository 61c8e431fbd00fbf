// SspRule: bounded staleness (stale synchronous parallel, Ho et al., NIPS 2013). Each gradient is applied
// when it arrives; its answer waits until the worker is at most train.staleness gradients ahead of the
// slowest one. Every ps counts for itself, and per block: a worker's count on a block is the number of its
// gradients applied there. So the weights of an answer hold every gradient of every worker but its last
// `staleness`, whatever the number of ps. Workers that are done do not count, nor do lost ones, unless the
// run waits for them. One that comes later begins at the slowest's count, one that comes back and was waited
// for at its own: ps 0 says which when it starts the worker, and every ps takes that. Were it to differ
// between the ps, two workers could wait for each other, each at another ps.
#pragma once

#include <vector>

#include "trainer/ps/turns.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

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
  StartPoint OnStart(Member& member) override;

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
  // Where a worker is kept back until its turn (turns.h): at the end of its exchange with each ps. The ps
  // decide each for itself, from the same gradients in nearly the same order; where they differ, a turn ends
  // by time.
  bool TakesTurns(int64_t block) const { return IsLast(block); }

  const int workers_;
  std::vector<Clock> clocks_;  // by block, then worker
  Turns turns_;
  std::vector<int> within_bound_;  // kept to spare the allocation
  bool together_ = false;          // the workers that start together are known
};

}  // namespace dtrain
