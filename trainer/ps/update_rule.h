// UpdateRule: when a ps applies the gradients that reach it and when it answers them, which is what
// train.mode chooses. Everything here goes by block (model/blocks.h): blocks of one worker come in order, and
// each is decided on its own. Implementations: async_rule.h, ssp_rule.h, sync_rule.h. Owner: PsServer.
// Thread: the ps loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/coordinator.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/parameter_shard.h"
#include "trainer/ps/start_point.h"

namespace dtrain {

// What a rule acts on. PsServer owns all of it and outlives its rule.
struct PsParts {
  const Config& config;
  ParameterShard& shard;
  Membership& members;
  Outbox& outbox;
  Coordinator* coordinator;       // ps 0; null elsewhere
  std::function<void()> ask_ps0;  // elsewhere: asks ps 0 anew where that waited for squares()
};

class UpdateRule {
 public:
  explicit UpdateRule(const PsParts& parts) : parts_(parts) {}
  virtual ~UpdateRule() = default;

  // ps 0, before the start: the run goes on from this global step; Member::taken is of it.
  virtual void BeginAt(uint64_t /*version*/) {}
  // One block of a worker's gradient, of the right size and in turn. A rule that has to wait for others takes
  // the message, in which the gradient lies.
  virtual void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) = 0;
  // A worker asks for a block of the weights.
  virtual void OnPull(Member& member, uint64_t request, const wire::Pull& pull);
  // A push (or a pull) that was taken before has come again. Answered anew, unless the first answer is still
  // due.
  virtual void OnRepeated(Member& member, uint64_t request, int64_t block) { Answer(member, request, block); }
  virtual void OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) {
    OnRepeated(member, request, pull.block());
  }
  // Whether an exchange of the worker has come as far as this block and is not answered.
  virtual bool Waits(const Member&, int64_t /*block*/) const { return false; }
  // The worker takes no more steps: nobody waits for it any more.
  virtual void Left(Member&) {}
  // The worker is gone, or was replaced, before it was done: what it had open is dropped. Whether the others
  // wait for it is failure.worker_lost.
  virtual void Lost(Member& member) { Left(member); }
  // ps 0: the worker is told to start.
  virtual StartPoint OnStart(Member& member) { return {member.taken, 0, false, 0, false}; }
  // ps 0: no more steps are granted than are granted now (sync: no more rounds than are decided).
  virtual void EndEarly() { parts_.coordinator->EndEarly(); }
  // For a checkpoint:
  // ps 0: no more rounds are decided until GoOn(). Returns the number of the last that was, which every ps
  // will finish; 0 where there are no rounds (all but sync).
  virtual uint64_t HoldRounds() { return 0; }
  virtual void GoOn() {}
  // ps 0: as GoOn(), but no gradient is taken any more: whoever begins or returns gets what there is.
  virtual void CloseRounds() {}
  // Whether every block here has applied all rounds up to this one.
  virtual bool HasFinished(uint64_t /*round*/) const { return true; }
  // ps i > 0: what ps 0 has decided (sync).
  virtual void OnRound(const wire::Round&) {}
  // ps i > 0: the number of the round to ask ps 0 for; 0: none (all but sync).
  virtual uint64_t NextRound() const { return 0; }
  // With a norm of rounds (sync with clip_norm):
  // ps i > 0: whether ps 0 must not be asked for another round until the norm of the latest is known here.
  virtual bool OwesNorm() const { return false; }
  // ps i > 0: the norm's part to tell ps 0 with the next question; null: none.
  virtual const gpu::SquareSum* squares() const { return nullptr; }
  // ps i > 0: ps 0's answer to it.
  virtual void OnScale(const wire::Scale&) {}
  // ps 0: another ps has told its part.
  virtual void OnNorm() {}

  // Every now and then, also while nothing comes: at least every 50 ms.
  virtual void Tick() {}

 protected:
  // The block's current weights, and with a step's last block what was granted for it. `held`: for how long
  // the answer was kept back for other workers.
  void Answer(Member& member, uint64_t request, int64_t block, Clock::duration held = {});
  void AnswerPrevious(Member& member, uint64_t request, int64_t block);
  bool waits_for_lost() const { return parts_.config.failure.worker_lost == WorkerLost::kWait; }
  bool IsLast(int64_t block) const { return block + 1 == parts_.shard.block_count(); }

  const PsParts parts_;

 private:
  void SendWeights(Member& member, uint64_t request, int64_t block, uint64_t version, uint64_t checksum,
                   net::LentBytes weights, Clock::duration held);
};

std::unique_ptr<UpdateRule> MakeUpdateRule(const PsParts& parts);

}  // namespace dtrain
