// UpdateRule: decides when a ps applies the gradients that reach it and when it answers them (train.mode). It
// works by block (model/layout.h): the blocks of one worker come in order, and each is decided on its own.
// Implementations: AsyncRule (update_rules.cc), ssp_rule.h, sync_rule.h.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/task_table.h"
#include "trainer/shard/parameter_shard.h"

namespace dtrain {

// The parts that a rule acts on. PsServer owns them and outlives its rule.
struct PsParts {
  const Config& config;
  ParameterShard& shard;
  TaskTable& members;
  Outbox& outbox;
  const std::unique_ptr<Leader>& leader;  // set before anything is handled
};

class UpdateRule {
 public:
  explicit UpdateRule(const PsParts& parts) : parts_(parts) {}
  virtual ~UpdateRule() = default;

  // Takes one block of a worker's gradient, of the right size and in turn. A rule that waits for other
  // workers keeps `message`, which holds the gradient.
  virtual void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) = 0;
  virtual void OnPull(Member& member, uint64_t request, const wire::Pull& pull);
  // A push (or a pull) that was taken before is repeated. Answers again, unless the first answer is due.
  virtual void OnRepeated(Member& member, uint64_t request, int64_t block) { Answer(member, request, block); }
  virtual void OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) {
    OnRepeated(member, request, pull.block());
  }
  // Whether an exchange of the worker has come as far as this block and is not answered.
  virtual bool Waits(const Member&, int64_t /*block*/) const { return false; }
  // The worker takes no more steps: no other worker waits for it.
  virtual void Left(Member&) {}
  // The worker is gone, or was replaced, before it was done: drops its open exchanges. failure.worker_lost
  // says whether the others wait for it.
  virtual void Lost(Member& member) { Left(member); }
  // On ps 0, when the worker is told to start: the clock with which it begins on every ps (ssp).
  virtual uint64_t StartClock(Member&) { return 0; }

  // The leader has decided a round (sync); rounds come in the order of their numbers. Advance() then applies
  // those whose gradients are here.
  virtual void OnRound(RoundDecision /*round*/) {}
  virtual void Advance() {}
  // The leader sends the factor for the mean of a round (sync with clip_norm).
  virtual void OnScale(uint64_t /*round*/, double /*scale*/) {}
  // Whether every block here has applied all rounds up to this one.
  virtual bool HasFinished(uint64_t /*round*/) const { return true; }

  // Called at least every 50 ms, also when no message comes.
  virtual void Tick() {}

 protected:
  // Sends the current weights of the block and, with the last block of a step, the steps granted for it.
  // `held`: how long the answer was held back for other workers.
  void Answer(Member& member, uint64_t request, int64_t block, Clock::duration held = {});
  void AnswerPrevious(Member& member, uint64_t request, int64_t block);
  bool waits_for_lost() const { return parts_.config.failure.worker_lost == WorkerLost::kWait; }
  bool IsLast(int64_t block) const { return block + 1 == parts_.shard.block_count(); }
  Leader& leader() { return *parts_.leader; }

  const PsParts parts_;

 private:
  void SendWeights(Member& member, uint64_t request, int64_t block, uint64_t version, uint64_t checksum,
                   net::LentBytes weights, Clock::duration held);
};

}  // namespace dtrain
