// SyncRule: holds the gradients of a round until all are here, applies their mean over all rows once, summed
// in the order of their workers, and answers each with the new weights. The leader decides which gradients a
// round has (trainer/leader/round_plan.h). A gradient is held in the frame in which it came, without a copy.
// A gradient of no rows is one of the round and counts nothing in the mean: its worker ends an epoch in step
// with the others (trainer/order/order.h). When a worker is lost after a round has named it, the blocks that
// are not applied yet go without it; then, and only then, ps may have applied different gradients.
//
// This does not happen where rounds wait for a lost worker (RoundsWaitForLost). There the gradients of a
// round are identified by worker and version. The worker comes back, takes the version of its last gradient
// (each block keeps the latest two), computes the same gradient again and sends it to every ps. A block that
// has applied it answers at once; any other has waited for it.
//
// With train.optimizer.clip_norm a round is applied when the norm of its mean over all ps is known: each ps
// measures its part when the round's gradients are complete, and ps 0 answers all with one scale. A ps
// applies exactly the gradients that it has measured.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "trainer/ps/measured_round.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

class SyncRule : public UpdateRule {
 public:
  explicit SyncRule(const PsParts& parts);
  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) override;
  void OnPull(Member& member, uint64_t request, const wire::Pull& pull) override;
  void OnRepeated(Member& member, uint64_t request, int64_t block) override;
  void OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) override;
  bool Waits(const Member& member, int64_t block) const override;
  void Left(Member& member) override;
  void OnRound(RoundDecision round) override;
  void Advance() override;
  void OnScale(uint64_t round, double scale) override;
  bool HasFinished(uint64_t round) const override { return round < OldestNext(); }
  RuleOfWorker OfWorker(int worker) const override;
  void SetOfWorker(int worker, const RuleOfWorker& of) override;
  void TakeRound(int64_t block, uint64_t round, const RoundSum* sum) override;
  uint64_t NextRound() const override { return OldestNext(); }

 protected:
  void OnLost(Member& member) override;

 private:
  // A block of an exchange that waits for its round.
  struct Held {
    uint64_t request = 0;  // 0: none
    bool is_push = false;
    bool resumes = false;  // a pull that waits not for a round of its own, but for the block's next version
    TimePoint since;       // unset when it did not wait for other workers
    net::Message message;
    RowDesk::Keys keys;  // of its gradient
  };
  struct Named {
    Member* member;
    Held* held;
  };

  Held& HeldOf(int worker, int64_t block) { return held_[IndexOf(worker, block)]; }
  void Hold(Member& member, uint64_t request, int64_t block, std::optional<uint64_t> version, bool is_push);
  void Resume(Member& member, uint64_t request, int64_t block, uint64_t version);
  void AnswerResuming(int64_t block);
  void AnswerCounted(Member& member, uint64_t request, int64_t block);
  void DropHeld(const Member& member);
  void TakeOut(Member& member, bool comes_back);
  void AdvanceBlocks();
  void AdvanceBlock(int64_t block);
  void MeasureNorm();
  void TakeMeasured(const RoundExchange& exchange, bool counts);
  bool Measured(const RoundDecision& round) const { return measured_ && !round.contributors.empty(); }
  bool Apply(const RoundDecision& round, int64_t block);
  Member* Here(const RoundExchange& exchange);
  bool Gather(const std::vector<RoundExchange>& exchanges, int64_t block, std::vector<Named>* named);
  bool GatherWaiting(const std::vector<RoundExchange>& exchanges, int64_t block, std::vector<Named>* named);
  bool GatherContributors(const RoundDecision& round, int64_t block);
  Member* Contributor(const RoundExchange& exchange);
  void GatherGradients(int64_t block);
  void GatherMeasured(int64_t block);
  void ApplyGradients(int64_t block, double scale);
  void Count(Member& member, const wire::Push& push);
  void CountLate(Member& member);
  // `now`: when the last block of the round had come.
  void Finish(const RoundDecision& round, int64_t block, TimePoint now);
  void Record(const RoundDecision& round, int64_t block);
  void RecordOne(Member& member, uint64_t request);
  void Settle(Member& member, uint64_t request, int64_t block);
  void DropFinishedRounds();
  uint64_t NextDecided() const { return first_round_ + rounds_.size(); }
  // The next round of the block that is furthest behind.
  uint64_t OldestNext() const { return *std::min_element(next_round_.begin(), next_round_.end()); }

  const bool rounds_wait_;                 // for lost workers
  const int64_t offering_block_;           // the block with which a round may take up an exchange
  std::vector<Held> held_;                 // by block, then worker
  std::deque<RoundDecision> rounds_;       // decided, and not yet finished by every block
  uint64_t first_round_ = 1;               // the number of the first of rounds_
  std::vector<uint64_t> next_round_;       // by block
  std::optional<MeasuredRound> measured_;  // with clip_norm
  uint64_t counted_ = 0;                   // the round whose gradients a ps 0 that was lost has counted last
  // Of the current round; kept to spare the allocations.
  std::vector<Named> contributors_, answered_;
  RoundGradients gradients_;
  RoundSum sum_;                          // that is to be recorded
  std::vector<const Member*> exchanges_;  // of the record
};

}  // namespace dtrain
