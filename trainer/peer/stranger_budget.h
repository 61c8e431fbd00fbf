// StrangerBudget: the share of a loop's time that messages of strangers may use. Beyond it they are dropped
// unread, so that a flood of them costs members a tenth of the loop, and a newcomer that asks again and again
// gets in beside it. Owner and thread: the loop, which gives it the time.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace dtrain {

class StrangerBudget {
 public:
  static constexpr int kOneIn = 10;
  // What the loop has saved up for strangers after a while without any, and what they can owe it: a process
  // that was stopped while it read a message must not be deaf for ten times as long.
  static constexpr milliseconds kMaxSaved{5};

  // Whether a message of a stranger may be read now. True: call Used() afterwards.
  bool Allows(TimePoint now) {
    saved_ = std::min<Clock::duration>(saved_ + (now - refilled_) / kOneIn, kMaxSaved);
    refilled_ = now;
    return saved_ > Clock::duration(0);
  }
  void Used(Clock::duration time) { saved_ = std::max<Clock::duration>(saved_ - time, -kMaxSaved); }

 private:
  Clock::duration saved_ = kMaxSaved;
  TimePoint refilled_;
};

}  // namespace dtrain
