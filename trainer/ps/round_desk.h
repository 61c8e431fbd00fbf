// RoundDesk: how the other ps learn of ps 0's rounds (sync). Each asks for the round that it needs next, and
// is answered as soon as that is decided; with a norm of rounds it tells its part of the norm first, and is
// answered with the round's scale. Every answer is made again from state when a question is repeated.
// Owner: Coordinator. Thread: the ps loop. docs/wire.md: WaitEnd, Round, Scale.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/round_norm.h"
#include "trainer/ps/round_plan.h"

namespace dtrain {

class RoundDesk {
 public:
  RoundDesk(const Config& config, Membership& members, Outbox& outbox);

  // The question of another ps; an older one is never given after a newer one.
  void Ask(const Member& ps, uint64_t request, const wire::WaitEnd& question);
  // It is gone: what it asked is not answered.
  void Forget(const Member& ps) { questions_[static_cast<size_t>(ps.task.index)] = Question(); }
  // A round was decided.
  void Announce(const RoundDecision& round);
  // With a norm of rounds: ps 0's own part of it, and what the round's mean is multiplied by once every ps
  // has told its part.
  void BeginNorm(uint64_t round, const gpu::SquareSum& own) { norm_->Begin(round, own); }
  std::optional<double> ScaleOf(uint64_t round) const { return norm_->Scale(round); }

 private:
  struct Question {
    uint64_t request = 0;  // 0: it has not asked yet
    uint64_t round = 0;    // that it needs next
    bool scale = false;    // it waits for the scale of the round before
  };

  bool AddNorm(const Member& ps, const wire::WaitEnd& question);
  void Answer(size_t ps);
  void SendScale(size_t ps);
  void SendRound(size_t ps, const RoundDecision& round);
  void DropKnown();
  net::NodeId NodeOf(size_t ps) { return members_.At({Role::kPs, static_cast<int>(ps)}).node; }

  Membership& members_;
  Outbox& outbox_;
  std::vector<Question> questions_;   // by ps; that of ps 0 stays empty
  std::deque<RoundDecision> rounds_;  // those that a ps may still ask for
  std::optional<RoundNorm> norm_;     // with train.optimizer.clip_norm
};

}  // namespace dtrain
