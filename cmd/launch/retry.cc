#include "cmd/launch/retry.h"

#include <algorithm>

namespace dtrain {

std::optional<TimePoint> Retry::Next() {
  constexpr int kShortestMs = 50, kLongestMs = 4000;
  const TimePoint now = Clock::now();
  if (now >= until_) return std::nullopt;
  std::uniform_int_distribution<int> pause_ms(kShortestMs, longest_ms_);
  longest_ms_ = std::min(2 * longest_ms_, kLongestMs);
  return now + milliseconds(pause_ms(random_));
}

}  // namespace dtrain
