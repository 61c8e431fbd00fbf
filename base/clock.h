// Time. Durations and deadlines are on the steady clock; wall time is for people and file names only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dtrain {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using std::chrono::milliseconds;

inline double SecondsBetween(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}
inline double SecondsSince(TimePoint from) { return SecondsBetween(from, Clock::now()); }

// Nanoseconds since the Unix epoch.
int64_t WallNanos();

// "2026-01-31 23:59:59.123", local time.
std::string WallText(int64_t wall_nanos);

// When this process was executed, in nanoseconds since the Unix epoch; to the kernel's tick (10 ms).
int64_t ProcessStartWallNanos();

}  // namespace dtrain
