// PacedTimer: tells when a period has passed, for a loop that is too fast to read the clock in every round.
// It looks at the clock every so many rounds, about eight times in a period, and adapts to the loop's pace.
// Thread: the owner's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace dtrain {

class PacedTimer {
 public:
  PacedTimer(Clock::duration period, TimePoint now) : period_(period), began_(now), looked_(now) {}

  // Counts a round. True about once in a period.
  bool Due() { return Tick() && Passed(Clock::now()); }

  // The two halves of Due(). Counts a round; true when it is time to look at the clock,
  bool Tick() { return --rounds_left_ <= 0; }
  // which says `now`: true when a period has passed, and the next one begins.
  bool Passed(TimePoint now) {
    const int64_t elapsed = std::max<int64_t>((now - looked_).count(), 1);
    const int64_t at_this_pace = rounds_ * (period_.count() / 8) / elapsed;
    // At most twice as far as this time: one quick round does not say that all are.
    rounds_ = std::clamp<int64_t>(at_this_pace, 1, std::min(2 * rounds_, kMostRounds));
    rounds_left_ = rounds_;
    looked_ = now;
    if (now - began_ < period_) return false;
    began_ = now;
    return true;
  }

 private:
  static constexpr int64_t kMostRounds = 1 << 16;

  const Clock::duration period_;
  TimePoint began_;
  TimePoint looked_;
  int64_t rounds_ = 1;  // between two looks
  int64_t rounds_left_ = 1;
};

}  // namespace dtrain
