// UpdateRule: decides when a ps applies the gradients that reach it and when it answers them (train.mode). It
// works by block (model/layout.h): the blocks of one worker come in order, and each is decided on its own.
// Implementations: AsyncRule (update_rules.cc), ssp_rule.h, sync_rule.h.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gpu/optimizer_ops.h"
#include "net/codec.h"
#include "net/compress.h"
#include "net/lent_buffer.h"
#include "trainer/config/choices.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/row_desk.h"
#include "trainer/ps/task_table.h"
#include "trainer/shard/shard.h"

namespace dtrain {

class ReplicaLink;

// CompressedWeights: blocks of weights as net.compress.pull has them. A version is compressed once, however
// many workers get it. Each is rounded from the full weights, so nothing of one version is left for the next.
// Rows of a table are rounded at random: a weight that is small beside another one would always be the same.
class CompressedWeights {
 public:
  CompressedWeights(net::Compression form, int64_t blocks)
      : form_(form), kept_(static_cast<size_t>(blocks)) {}
  net::Compression form() const { return form_; }
  // Takes the lent weights of a block; returns those to send in their place.
  net::LentBytes Take(int64_t block, uint64_t version, const net::LentBytes& weights);
  // The same of rows, for one answer.
  net::LentBytes TakeRows(const net::LentBytes& rows, uint64_t seed);
  uint64_t bytes_saved() const { return bytes_saved_; }

 private:
  struct Kept {
    uint64_t version = 0;
    const net::LentBuffer* buffer = nullptr;  // null: none
    net::LentBuffer::Hold hold;
  };

  const net::Compression form_;
  net::LentBuffers buffers_;
  std::vector<Kept> kept_;  // by block, the version that was sent last
  uint64_t bytes_saved_ = 0;
};

// The parts that a rule acts on. PsServer owns them and outlives its rule.
struct PsParts {
  const Config& config;
  Shard& shard;
  TaskTable& members;
  Outbox& outbox;
};

// RuleOfWorker: what a rule knows of a worker, for a replica.
struct RuleOfWorker {
  std::vector<wire::ReplicaClock> clocks;  // ssp: by block
  bool together = false;                   // ssp: the workers that start together are known
  std::vector<uint64_t> next_rounds;       // sync: by block, of all workers
  // Of ps 0:
  std::vector<uint64_t> held;  // ssp: by block, the request whose answer is due
  uint64_t measured = 0;       // sync: the round whose gradients were counted last, before it is applied

  template <typename Archive>
  void State(Archive& archive) {
    std::vector<std::pair<uint64_t, bool>> list;
    for (const wire::ReplicaClock& clock : clocks) list.emplace_back(clock.gradients(), clock.counts());
    archive(list, together, next_rounds, held, measured);
    clocks.clear();
    for (const auto& [gradients, counts] : list) clocks.emplace_back(gradients, counts);
  }
};

class UpdateRule {
 public:
  explicit UpdateRule(const PsParts& parts);
  virtual ~UpdateRule() = default;

  // Call this before anything is handled: the leader acts on the rule, so it is made later.
  void set_leader(Leader& leader) {
    leader_ = &leader;
    ledger_ = leader.ledger();
  }

  // Takes one block of a worker's gradient, of the right size and in turn. A rule that waits for other
  // workers keeps `message`, which holds the gradient.
  virtual void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) = 0;
  virtual void OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
    AnswerPull(member, request, pull);
  }
  // A push (or a pull) that was taken before is repeated. Answers again, unless the first answer is due.
  virtual void OnRepeated(Member& member, uint64_t request, int64_t block) { Answer(member, request, block); }
  virtual void OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) {
    AnswerPull(member, request, pull);
  }
  // Whether the worker may push: ps 0 has granted it a step.
  bool MayPush(const Member& worker) const { return ledger_ == nullptr || ledger_->MayStep(worker); }
  // Whether an exchange of the worker has come as far as this block and is not answered.
  virtual bool Waits(const Member&, int64_t /*block*/) const { return false; }
  // The worker takes no more steps: no other worker waits for it.
  virtual void Left(Member&) {}
  // The worker is gone, or was replaced, before it was done: drops its open exchanges. failure.worker_lost
  // says whether the others wait for it.
  void Lost(Member& member) {
    if (member.is_worker()) rows_.Forget(member.task.index);
    OnLost(member);
  }
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

  // With a replica: what changes without the message of a worker is recorded there.
  void set_replica(ReplicaLink& replica) { replica_ = &replica; }
  // What the rule of a ps tells that of its replica.
  virtual RuleOfWorker OfWorker(int /*worker*/) const { return {}; }
  virtual void SetOfWorker(int /*worker*/, const RuleOfWorker& /*of*/) {}
  // sync: a replica gets what a round has made of a block. Null: nothing.
  virtual void TakeRound(int64_t /*block*/, uint64_t /*round*/, const RoundSum* /*sum*/) {}
  // sync: the first round that some block here has not applied; else 0.
  virtual uint64_t NextRound() const { return 0; }

  // Called at least every 50 ms, also when no message comes.
  virtual void Tick() {}

  // Of a table: the rows that workers have asked for. The keys of a message are taken before the message is.
  RowDesk& rows() { return rows_; }
  const RowDesk& rows() const { return rows_; }
  // The gradient in a message of that worker, which GradientCheck has found to be right.
  BlockGradient GradientOf(const Member& member, const wire::Push& push, const net::Message& message) const {
    return GradientIn(message, push, *rows_.KeysNamedBy(member.task.index, push));
  }
  // The bytes that compression has spared in the weights that were sent.
  uint64_t bytes_saved() const { return compressed_.bytes_saved(); }

 protected:
  virtual void OnLost(Member& member) { Left(member); }
  // Sends the current weights of the block and, with the last block of a step, the steps granted for it.
  // `held`: how long the answer was held back for other workers.
  void Answer(Member& member, uint64_t request, int64_t block, Clock::duration held = {}) {
    Send(member, request, block, compressed_.form(), held);
  }
  // The same. A worker that takes no step with the weights evaluates them, and gets them in full.
  void AnswerPull(Member& member, uint64_t request, const wire::Pull& pull) {
    const bool of_rows = parts_.shard.table(pull.block()) != nullptr;
    const bool for_step = of_rows ? !pull.read() : pull.enter();
    Send(member, request, pull.block(), for_step ? compressed_.form() : net::Compression::kNone, {});
  }
  // The same as Answer() with the version before.
  void AnswerPrevious(Member& member, uint64_t request, int64_t block) {
    Send(member, request, block, compressed_.form(), {}, /*previous=*/true);
  }
  // Whether a pull says that the worker has no gradients any more, and must not hold up the others: it says
  // so itself, or evaluates the whole model. Rows of a table are pulled by an evaluation too, and by a worker
  // that reads ahead.
  bool IsDoneWithSteps(const wire::Pull& pull) const {
    return !pull.enter() && (pull.leaves() || (pull.block() == 0 && !parts_.shard.has_table()));
  }
  bool waits_for_lost() const;
  // The block with which an exchange with this ps ends.
  int64_t last_block() const { return parts_.shard.InOrder(parts_.shard.block_count() - 1); }
  bool IsLast(int64_t block) const { return block == last_block(); }
  // Applies a block of a gradient alone, unless the weights have it already. One of no rows makes a new
  // version of the same weights.
  void ApplyAlone(Member& member, const wire::Push& push, const net::Message& message) {
    if (!push.empty() && push.examples() == 0) {
      parts_.shard.ApplyMean(push.block(), {});
    } else if (!push.empty()) {
      parts_.shard.Apply(push.block(), GradientOf(member, push, message));
    }
    Take(member, push.block());
  }
  // Counts a block of the worker's process that is in the weights here, or is sure to be.
  void Take(Member& member, int64_t block) {
    TakenOfProcess& taken = TakenOf(member);
    ++taken.blocks;
    taken.dropped = false;
    if (IsLast(block)) EndGradient(&taken);
  }
  // sync: counts a gradient that came too late for its round, and is in no weights.
  void TakeDropped(Member& member) {
    TakenOfProcess& taken = TakenOf(member);
    taken.dropped = true;
    EndGradient(&taken);
  }
  // Counts a gradient that was applied alone, with its last block.
  void CountStep(Member& member, const wire::Push& push) {
    ++member.taken;
    if (ledger_ == nullptr) return;
    push.empty() ? ledger_->StepTakenBefore(member) : ledger_->StepApplied(member, push);
  }
  // Grants the step that the answer to a whole gradient tells; ps 0 alone does.
  void Grant(Member& member, uint64_t request) {
    if (ledger_ != nullptr) member.GrantOf(request) = ledger_->GrantNext(member);
  }

  // The place of a worker's block among those of all: by block, then worker.
  size_t IndexOf(int worker, int64_t block) const {
    return static_cast<size_t>(block) * static_cast<size_t>(workers_) + static_cast<size_t>(worker);
  }
  size_t blocks_of_all() const { return IndexOf(0, parts_.shard.block_count()); }

  const PsParts parts_;
  const int workers_;
  Leader* leader_ = nullptr;
  RunLedger* ledger_ = nullptr;     // null: this is not ps 0
  ReplicaLink* replica_ = nullptr;  // null: there is none

 private:
  static TakenOfProcess& TakenOf(Member& member) {
    if (member.of_process.incarnation != member.incarnation) member.of_process = {member.incarnation};
    return member.of_process;
  }
  static void EndGradient(TakenOfProcess* taken) {
    ++taken->gradients;
    taken->blocks = 0;
  }
  void Send(Member& member, uint64_t request, int64_t block, net::Compression form, Clock::duration held,
            bool previous = false);
  net::LentBytes TakeRows(const net::LentBytes& rows, const Member& member, uint64_t request, int64_t block,
                          net::WeightsHead* head);
  net::LentBytes TakeRange(const net::LentBytes& weights, int64_t block, net::WeightsHead* head);

  RowDesk rows_;
  CompressedWeights compressed_;
};

// The rule that train.mode names.
std::unique_ptr<UpdateRule> MakeUpdateRule(const PsParts& parts);

}  // namespace dtrain
