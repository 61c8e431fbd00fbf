// Rounds: the leader's part in synchronous rounds (train.mode: sync). It decides them (round_plan.h), hands
// each to the rule of ps 0, and answers the other ps: each asks for the round that it needs next, and is
// answered as soon as that is decided; with train.optimizer.clip_norm it tells its part of the norm first,
// and is answered with the round's scale. Every answer is made again from state when a question is repeated.
// Owner: LocalLeader. Thread: the ps loop. docs/wire.md: WaitEnd, Round, Scale.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "gpu/optimizer_ops.h"
#include "trainer/config/config.h"
#include "trainer/leader/round_plan.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

// RoundNorm: what the mean gradient of a round is multiplied by, so that its norm over the whole model is at
// most train.optimizer.clip_norm. Each ps measures its own range; the exact sums are added, so that the
// result does not depend on how many ps there are. A part is of what its ps is going to apply.
class RoundNorm {
 public:
  RoundNorm(size_t ps, double clip_norm) : clip_norm_(clip_norm), here_(ps) {}

  // The part of ps 0. From now on `round` is the one that parts are taken of.
  void Begin(uint64_t round, const gpu::SquareSum& own);
  // The part of another ps. Dropped where it is of another round, has come before, or has no such ps; such a
  // one comes again. Returns whether now all are here.
  bool Add(uint64_t round, int ps, const gpu::SquareSum& part);
  // Of the latest round of which all parts were here; unset for any other. No ps can ask for an older one: a
  // round needs a part of each.
  std::optional<double> Scale(uint64_t round) const;

 private:
  bool Complete();

  const double clip_norm_;
  uint64_t round_ = 0;      // that parts are taken of
  std::vector<bool> here_;  // by ps
  size_t missing_ = 0;
  gpu::SquareSum sum_;
  uint64_t complete_ = 0;  // the latest round of which all were here
  double scale_ = 1;       // of that
};

// The part that came with a ps's question; unset where there is none, or it is not one.
std::optional<gpu::SquareSum> SquaresIn(const wire::WaitEnd& question);

class Rounds {
 public:
  Rounds(const Config& config, TaskTable& members, Outbox& outbox, UpdateRule& rule);

  // The run goes on from this global step, with Member::taken as of it.
  void BeginAt(int64_t step);
  // As Leader has them.
  void ExpectTogether(const flatbuffers::Vector<uint32_t>& workers);
  void Offer(RoundExchange exchange, std::optional<uint64_t> version);
  void Leave(const Member& worker, bool comes_back);
  std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& own);

  // Where a worker that is told to start goes on; unset: like a newcomer.
  std::optional<StartPoint> Return(const Member& worker);
  // No round is decided until GoOn(). Returns the number of the last that was, which every ps will finish.
  uint64_t Hold();
  void GoOn();
  // No more rounds with contributors than are decided. Those who begin or return get the weights that there
  // are.
  void EndHere() { plan_.EndHere(); }
  // Rounds with contributors that are decided: the global step when all are applied.
  int64_t version() const { return static_cast<int64_t>(plan_.version()); }

  // The question of another ps, in its Member::end_request.
  void Ask(Member& ps, const wire::WaitEnd& question);

 private:
  void Decide();
  void Announce(const RoundDecision& round);
  bool AddNorm(Member& ps, const wire::WaitEnd& question);
  void Answer(const Member& ps);
  void SendScale(const Member& ps);
  void SendRound(const Member& ps, const RoundDecision& round);
  void DropKnown();

  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  UpdateRule& rule_;
  const bool alone_;  // there is no other ps
  RoundPlan plan_;
  uint64_t last_ = 0;                 // the number of the last that was decided
  bool held_ = false;                 // none is decided
  bool together_ = false;             // the workers that start together are known
  std::deque<RoundDecision> rounds_;  // those that a ps may still ask for
  std::optional<RoundNorm> norm_;     // with clip_norm
};

}  // namespace dtrain
