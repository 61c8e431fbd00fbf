// What is left until a deadline, as poll() wants it.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace dtrain {

// Rounded up, so that the deadline has passed afterwards; -1, which is for ever, without one.
inline int PollTimeout(TimePoint deadline) {
  if (deadline == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

}  // namespace dtrain
