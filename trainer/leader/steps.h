// Steps: grants the steps of a run to the workers. A worker gets its next grant with the answer to its last
// step, or asks for it and waits until there is one, or until the run has no more. In sync a step belongs to
// the round, and a grant only lets the worker take part. With data.split: dynamic a worker has steps only
// while it has batches (leases.h), and gives them back when it asks. Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "trainer/config/config.h"
#include "trainer/leader/leases.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

// StepGrants: counts the granted and applied steps, so that `train.steps: N` ends at exactly N. A granted
// step is either applied, or given back (by a worker that leaves or is lost) and granted again.
class StepGrants {
 public:
  // `total`: the steps of the run; unset: no limit, the workers' epochs end the run. `applied`: the steps
  // that a checkpoint holds.
  explicit StepGrants(std::optional<int64_t> total, int64_t applied = 0)
      : total_(total ? std::max(*total, applied) : std::numeric_limits<int64_t>::max()), applied_(applied) {}

  // Grants up to `wanted` steps; fewer, or none, when the rest is granted already.
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
  // Grants no more steps: the run ends after the open ones and `more` others (sync).
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

  template <typename Archive>
  void State(Archive& archive) {
    archive(total_, ended_, applied_, open_);
  }

  int64_t applied() const { return applied_; }  // the global step
  int64_t open() const { return open_; }
  bool over() const { return applied_ == total_; }

 private:
  int64_t total_;
  bool ended_ = false;  // EndEarly() was called
  int64_t applied_;
  int64_t open_ = 0;  // granted, neither applied nor given back
};

class Steps {
 public:
  // `clock_of`: how a worker enters again that has paused (UpdateRule::StartClock).
  Steps(const Config& config, TaskTable& members, Outbox& outbox, Leases& leases,
        std::function<uint64_t(Member&)> clock_of = nullptr);

  void BeginAt(int64_t step) { grants_ = StepGrants(config_.train.steps, step); }
  // Outside sync: grants no more steps, since the last checkpoint would not have them.
  void Close() { closed_ = true; }
  // Ends the run after the steps that are granted now, or after `rounds` rounds in all (sync).
  void EndEarly(std::optional<int64_t> rounds);

  // Grants the first steps of a worker: as many as it may have in flight (train.in_flight), those that it
  // still holds included.
  uint32_t GrantFirst(Member& member);
  // Grants the worker's next step: 1, or 0 near the end of the run.
  uint32_t GrantNext(Member& member);
  // Answers a worker that asks for a step, now or when there is one or the run has no more. `paused`: nobody
  // waits for it meanwhile.
  void OnNeedStep(Member& member, uint64_t request, bool paused = false);
  // Answers the waiting workers that can now be answered.
  void ServeWaiting();
  // Whether every worker waits for a step or is done: every ps has answered all of its gradients.
  bool AllWait() const;
  // Takes back the worker's open steps; others may get them.
  void GiveBack(Member& member);

  // Counts an applied step of `member`; in sync RoundApplied() counts instead.
  void Applied(Member& member) {
    --member.open_steps;
    Count();
  }
  // The step of `member` was counted before, as another worker's.
  void WasApplied(Member& member) {
    if (sync()) return;
    --member.open_steps;
    grants_.GiveBack(1);
  }
  void RoundApplied() {
    grants_.Take(1);
    Count();
  }

  template <typename Archive>
  void State(Archive& archive) {
    archive(grants_, closed_, first_applied_nanos_);
  }

  int64_t applied() const { return grants_.applied(); }  // the global step
  bool over() const { return grants_.over() || leases_.over(); }
  // Wall clock of the first applied step; 0: none yet.
  int64_t first_applied_nanos() const { return first_applied_nanos_; }

 private:
  bool sync() const { return config_.train.mode == TrainMode::kSync; }
  uint32_t Grant(Member& member, int64_t wanted);
  void Answer(Member& member, uint64_t request, uint32_t steps, bool pause);
  void Count() {
    if (first_applied_nanos_ == 0) first_applied_nanos_ = WallNanos();
    grants_.Applied();
  }

  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  Leases& leases_;
  const std::function<uint64_t(Member&)> clock_of_;
  StepGrants grants_;
  bool closed_ = false;
  int64_t first_applied_nanos_ = 0;
};

}  // namespace dtrain
