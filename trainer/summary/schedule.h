// Schedule: at which steps of a task its summaries get a point: summary.every_steps and summary.every_secs.
// Thread: the owner's.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "trainer/config/config.h"

namespace dtrain {

class Schedule {
 public:
  explicit Schedule(const SummaryConfig& config) : every_steps_(config.every_steps) {
    if (config.every_secs <= 0) return;
    const std::chrono::duration<double> seconds(config.every_secs);
    timer_.emplace(std::chrono::duration_cast<Clock::duration>(seconds), Clock::now());
  }

  // To be asked once for each step, in order.
  bool Due(int64_t step) {
    const bool by_time = timer_ && timer_->Due();
    return by_time || (every_steps_ > 0 && step % every_steps_ == 0);
  }

 private:
  const int64_t every_steps_;
  std::optional<PacedTimer> timer_;
};

}  // namespace dtrain
