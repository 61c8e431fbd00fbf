// Retry: when to connect again to a machine that has turned us away, as sshd does with some of many that come
// at once. Each comes again at another time, later and later. Owner: who connects. Thread: its owner's.
#pragma once

#include <optional>
#include <random>

#include "base/clock.h"

namespace dtrain {

class Retry {
 public:
  // Nothing once it was tried for long enough.
  std::optional<TimePoint> Next();

 private:
  const TimePoint until_ = Clock::now() + milliseconds(30000);
  int longest_ms_ = 500;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace dtrain
