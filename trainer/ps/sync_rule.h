// SyncRule: the gradients of a round are held until all of them are here, summed in the order of their
// workers, divided by their number and applied once; then each is answered with the new weights. The leader
// decides which gradients a round has (trainer/leader/round_plan.h). A gradient is held as the frame that it
// came in, not copied. A worker that was lost after a round named it is left out of what has not been applied
// yet: then, and only then, ps may have applied different gradients.
//
// Not so where rounds wait for a lost worker (RoundsWaitForLost). What a round has is then known by worker
// and version: the worker comes back, takes the version that its last gradient was of (each block keeps the
// latest two), computes the same gradient again and sends it to all. A block that has applied it answers at
// once, any other has waited for it.
//
// With train.optimizer.clip_norm a round is applied when the norm of its mean over all ps is known: each ps
// measures its part once the round's gradients are here in full, and ps 0 answers all with one scale. A ps
// applies just what it measured, so that the norm is that of what all apply together.
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
  void Lost(Member& member) override;
  void OnRound(RoundDecision round) override;
  void Advance() override;
  void OnScale(uint64_t round, double scale) override;
  bool HasFinished(uint64_t round) const override { return round < OldestNext(); }

 private:
  // An exchange's block that waits for its round.
  struct Held {
    uint64_t request = 0;  // 0: none
    bool is_push = false;
    bool resumes = false;  // a pull that waits for no round of its own, but for this block's next version
    TimePoint since;       // unset where it was not the others that it waits for
    net::Message message;
  };
  struct Named {
    Member* member;
    Held* held;
  };

  size_t IndexOf(int worker, int64_t block) const {
    return static_cast<size_t>(block) * static_cast<size_t>(workers_) + static_cast<size_t>(worker);
  }
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
  void TakeMeasured(const RoundExchange& exchange);
  bool Measured(const RoundDecision& round) const { return measured_ && !round.contributors.empty(); }
  bool Apply(const RoundDecision& round, int64_t block);
  Member* Here(const RoundExchange& exchange);
  bool Gather(const std::vector<RoundExchange>& exchanges, int64_t block, std::vector<Named>* named);
  bool GatherWaiting(const std::vector<RoundExchange>& exchanges, int64_t block, std::vector<Named>* named);
  bool GatherContributors(const RoundDecision& round, int64_t block);
  Member* Contributor(const RoundExchange& exchange);
  void GatherGradients(int64_t block);
  void GatherMeasured(int64_t block);
  void Count(Member& member, const wire::Push& push);
  // `now`: when the round's last block had come.
  void Finish(int64_t block, bool with_contributors, TimePoint now);
  void DropFinishedRounds();
  uint64_t NextRound() const { return first_round_ + rounds_.size(); }
  // The next round of the block that is the furthest behind.
  uint64_t OldestNext() const { return *std::min_element(next_round_.begin(), next_round_.end()); }

  const int workers_;
  const bool rounds_wait_;                 // for lost workers
  const int64_t offering_block_;           // the one with which an exchange counts as here
  std::vector<Held> held_;                 // by block, then worker
  std::deque<RoundDecision> rounds_;       // decided, and not finished by every block
  uint64_t first_round_ = 1;               // the number of the first of them
  std::vector<uint64_t> next_round_;       // by block
  std::optional<MeasuredRound> measured_;  // clip_norm
  // Of the round in hand; kept to spare the allocations.
  std::vector<Named> contributors_, answered_;
  std::vector<net::TensorView> gradients_;
};

}  // namespace dtrain
