// Rounds: the leader's part in synchronous rounds (train.mode: sync). It decides the rounds (round_plan.h),
// hands each to the rule of ps 0, and answers the other ps. Another ps asks for its next round and gets the
// answer once the round is decided; with train.optimizer.clip_norm it first sends its part of the norm and
// gets the round's scale. A repeated question is answered again from the state. With failure.replicas a ps
// that has filled itself from its replica asks for rounds, and tells its part of their norms, once more.
// Owner: LocalLeader. Thread: the ps loop. docs/wire.md: WaitEnd, Round.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "gpu/optimizer_ops.h"
#include "trainer/config/choices.h"
#include "trainer/leader/round_plan.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

// RoundNorm: the factor that brings the norm of a round's mean gradient, over the whole model, to
// train.optimizer.clip_norm at most. Each ps measures the gradients that it is going to apply to its range;
// the exact sums are added, so the result does not depend on the number of ps.
class RoundNorm {
 public:
  RoundNorm(size_t ps, double clip_norm) : clip_norm_(clip_norm), here_(ps) {}

  // Takes the part of ps 0 and starts to collect the parts of `round`, unless it has it, from before ps 0 was
  // lost.
  void Begin(uint64_t round, const gpu::SquareSum& own);
  // Takes the part of another ps. Drops it when it is of another round, a repeat, or of an unknown ps; the ps
  // sends a dropped part again. Returns whether all parts are here now.
  bool Add(uint64_t round, int ps, const gpu::SquareSum& part);
  // The factor of `round`, if all its parts were here and it was not dropped; else unset. Only a ps that has
  // filled itself from its replica can ask for another round than the latest, because a round needs a part of
  // each.
  std::optional<double> Scale(uint64_t round) const;
  void DropBefore(uint64_t round);
  template <typename Archive>
  void State(Archive& archive) {
    archive(round_, here_, missing_, sum_.words, sum_.finite, known_);
  }

 private:
  bool Complete();

  const double clip_norm_;
  uint64_t round_ = 0;      // the round whose parts are collected
  std::vector<bool> here_;  // by ps
  size_t missing_ = 0;
  gpu::SquareSum sum_;
  struct Known {
    uint64_t round = 0;
    double scale = 1;
    template <typename Archive>
    void State(Archive& archive) {
      archive(round, scale);
    }
  };
  std::deque<Known> known_;  // the rounds that had all parts, in their order
};

// The part of the norm in a question of a ps; unset: there is none, or it is malformed.
std::optional<gpu::SquareSum> SquaresIn(const wire::WaitEnd& question);

class Rounds {
 public:
  Rounds(const Config& config, TaskTable& members, Outbox& outbox, UpdateRule& rule);

  // The run goes on at this global step. Member::taken must have its values.
  void BeginAt(int64_t step);
  // As in RunLedger and Leader.
  void ExpectTogether(const flatbuffers::Vector<uint32_t>& workers);
  void Offer(RoundExchange exchange, std::optional<uint64_t> version);
  void Leave(const Member& worker, bool comes_back);
  std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& own);

  // Where a worker that is told to start goes on; unset: it begins like a newcomer.
  std::optional<StartPoint> Return(const Member& worker);
  // Decides no round until GoOn(). Returns the number of the last decided round, which every ps will finish.
  uint64_t Hold();
  uint64_t last() const { return last_; }
  void GoOn();
  // Decides no more rounds with contributors. Workers that begin or return get the current weights.
  void EndHere() { plan_.EndHere(); }
  // Decides what can be decided, unless rounds are held, and has the rule of ps 0 apply it.
  void Decide();
  // The number of decided rounds with contributors: the global step when all are applied.
  int64_t version() const { return static_cast<int64_t>(plan_.version()); }

  // Takes the question of another ps, whose request number is in Member::end_request.
  void Ask(Member& ps, const wire::WaitEnd& question);
  // Tells the rounds that a lost ps may lack to the holder of its replica, which stands in for it.
  void TellStandIn(const Member* holder, ReplicaHolder* here);
  template <typename Archive>
  void State(Archive& archive) {
    archive(plan_, last_, held_, together_, rounds_, kept_);
    if (norm_) archive(*norm_);
  }
  // The state was read: hands the rule the rounds that it has not applied.
  void TakeOver();

 private:
  bool IsDecided(const RoundExchange& exchange) const;
  void Announce(const RoundDecision& round);
  bool AddNorm(Member& ps, const wire::WaitEnd& question);
  void Answer(const Member& ps);
  void SendScale(const Member& ps);
  void SendRound(const Member& ps, const RoundDecision& round, bool of_replica = false);
  void DropKnown();
  [[noreturn]] void GiveUpSlowest() const;

  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  UpdateRule& rule_;
  const bool alone_;          // there is no other ps
  const bool wait_for_lost_;  // rounds do
  RoundPlan plan_;
  uint64_t last_ = 0;                 // the number of the last decided round
  bool held_ = false;                 // between Hold() and GoOn()
  bool together_ = false;             // the workers that start together are known
  std::deque<RoundDecision> rounds_;  // the rounds that a ps may still ask for
  size_t kept_ = 0;                   // the exchanges in them
  std::optional<RoundNorm> norm_;     // with clip_norm
};

}  // namespace dtrain
