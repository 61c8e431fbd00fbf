// StepGrants: the steps of a run, dealt out one by one by ps 0 so that `train.steps: N` ends at exactly N.
// A step is granted, then applied, or given back (by a worker that leaves or is lost) and granted again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/check.h"

namespace dtrain {

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

}  // namespace dtrain
