// Steps: which workers are granted the steps of a run. A worker is granted its next step with an answer to
// the one before, or asks for it and waits until there is one, or there will be none. In sync a step is the
// round's, not its worker's: a grant only lets the worker take part. Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "trainer/config/config.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

// StepGrants: the steps of a run, dealt out one by one so that `train.steps: N` ends at exactly N. A step is
// granted, then applied, or given back (by a worker that leaves or is lost) and granted again.
class StepGrants {
 public:
  // Without a total there is always another step: the workers' epochs end the run. `applied`: how many of
  // them a checkpoint has already.
  explicit StepGrants(std::optional<int64_t> total, int64_t applied = 0)
      : total_(total ? std::max(*total, applied) : std::numeric_limits<int64_t>::max()), applied_(applied) {}

  // Up to `wanted` steps; fewer, or none, when the rest is granted already.
  int64_t Take(int64_t wanted) {
    const int64_t steps = std::min(wanted, total_ - applied_ - open_);
    open_ += steps;
    return steps;
  }
  void GiveBack(int64_t steps) {
    DT_CHECK(steps <= open_, steps, open_);
    open_ -= steps;
    if (ended_) total_ -= steps;
  }
  // From now on none is granted: `more` that are not open yet are still to be applied (sync), and those that
  // are.
  void EndEarly(int64_t more) {
    if (ended_) return;
    ended_ = true;
    total_ = std::min(total_, applied_ + open_ + more);
  }
  void Applied() {
    DT_CHECK(open_ >= 1, open_, applied_);
    --open_;
    ++applied_;
  }

  int64_t applied() const { return applied_; }  // the global step
  int64_t open() const { return open_; }
  bool over() const { return applied_ == total_; }

 private:
  int64_t total_;
  bool ended_ = false;  // early
  int64_t applied_;
  int64_t open_ = 0;  // granted, not yet applied
};

class Steps {
 public:
  Steps(const Config& config, TaskTable& members, Outbox& outbox);

  // The run begins at this global step.
  void BeginAt(int64_t step) { grants_ = StepGrants(config_.train.steps, step); }
  // No step is granted any more outside sync: what comes after the last checkpoint is lost.
  void Close() { closed_ = true; }
  // No more steps than are granted now, or `rounds` in all (sync).
  void EndEarly(std::optional<int64_t> rounds);

  // For a worker that starts: as many as it may have under way. What it is granted already counts.
  uint32_t GrantFirst(Member& member);
  // For its next: 1, or 0 near the end of the run.
  uint32_t GrantNext(Member& member);
  // Asked for; answered when there is one, or the last is applied.
  void OnNeedStep(Member& member, uint64_t request);
  // To be called when those who wait may have got an answer.
  void ServeWaiting();
  // The worker's open steps are granted again.
  void GiveBack(Member& member);

  // A step of `member` was applied; not for sync. Of nobody in particular: a round.
  void Applied(Member& member) {
    --member.open_steps;
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
  uint32_t Grant(Member& member, int64_t wanted);
  void Count() {
    if (first_applied_nanos_ == 0) first_applied_nanos_ = WallNanos();
    grants_.Applied();
  }

  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  StepGrants grants_;
  bool closed_ = false;
  int64_t first_applied_nanos_ = 0;
};

}  // namespace dtrain
