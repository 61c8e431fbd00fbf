// StepDesk: who is granted the steps of a run. A worker is granted its next step with an answer to the one
// before, or asks for it and waits until there is one, or there will be none. In sync a step is the round's,
// not its worker's: a grant only lets the worker take part.
// Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/standings.h"
#include "trainer/ps/step_grants.h"

namespace dtrain {

class StepDesk {
 public:
  StepDesk(const Config& config, Membership& members, Standings& standings, Outbox& outbox);

  // The run begins at this global step.
  void BeginAt(int64_t step) { grants_ = StepGrants(config_.train.steps, step); }
  // No step is granted any more outside sync: what comes after the last checkpoint is lost.
  void Close() { closed_ = true; }
  // No more steps than are granted now, or `rounds` in all (sync).
  void EndEarly(std::optional<int64_t> rounds);

  // For a worker that starts: as many as it may have under way. What it is granted already counts.
  uint32_t GrantFirst(const Member& member);
  // For its next: 1, or 0 near the end of the run.
  uint32_t GrantNext(const Member& member);
  // Asked for; answered when there is one, or the last is applied.
  void OnNeedStep(Member& member, uint64_t request);
  // To be called when those who wait may have got an answer.
  void ServeWaiting();
  // The worker's open steps are granted again.
  void GiveBack(const Member& member);

  // A step of `member` was applied; not for sync. Of nobody in particular: a round.
  void Applied(const Member& member) {
    --standings_.Of(member).open_steps;
    Count();
  }
  void RoundApplied() {
    grants_.Take(1);
    Count();
  }

  int64_t applied() const { return grants_.applied(); }  // the global step
  bool over() const { return grants_.over(); }
  // Wall clock; 0: none was.
  int64_t first_applied_nanos() const { return first_applied_nanos_; }

 private:
  bool sync() const { return config_.train.mode == TrainMode::kSync; }
  uint32_t Grant(const Member& member, int64_t wanted);
  void Count() {
    if (first_applied_nanos_ == 0) first_applied_nanos_ = WallNanos();
    grants_.Applied();
  }

  const Config& config_;
  Membership& members_;
  Standings& standings_;
  Outbox& outbox_;
  StepGrants grants_;
  bool closed_ = false;
  int64_t first_applied_nanos_ = 0;
};

}  // namespace dtrain
