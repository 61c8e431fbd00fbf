// Time: durations and deadlines are on the steady clock; wall time is for people and file names only.
#pragma once

#include <algorithm>
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

// Returns the wall time in nanoseconds since the Unix epoch.
int64_t WallNanos();

// Returns a wall time as local time with its offset from UTC, as RFC 3339 has it:
// "2026-01-31T23:59:59.123+01:00".
std::string WallText(int64_t wall_nanos);

// Returns the local time of day at which the steady clock comes to `at`: "23:59:59".
std::string TimeOfDay(TimePoint at);

// Returns when this process was started, in nanoseconds since the Unix epoch, to the kernel's tick (10 ms).
int64_t ProcessStartWallNanos();

// PacedTimer: tells a loop that a period has passed, without reading the clock in every round. It reads the
// clock about eight times in a period and adapts the number of rounds between two readings to the loop's
// pace. Thread: the owner's.
class PacedTimer {
 public:
  PacedTimer(Clock::duration period, TimePoint now) : period_(period), began_(now), looked_(now) {}

  // Counts a round. Returns true about once in a period.
  bool Due() { return Tick() && Passed(Clock::now()); }

  // The first half of Due(): counts a round. Returns true when it is time to read the clock.
  bool Tick() { return --rounds_left_ <= 0; }
  // The second half of Due(): takes the time. Returns true when a period has passed; the next period begins
  // at `now`.
  bool Passed(TimePoint now) {
    const int64_t elapsed = std::max<int64_t>((now - looked_).count(), 1);
    const int64_t at_this_pace = rounds_ * (period_.count() / 8) / elapsed;
    // Grows by a factor of two at most, because one quick round does not mean that all are quick.
    rounds_ = std::clamp<int64_t>(at_this_pace, 1, std::min(2 * rounds_, kMaxRounds));
    rounds_left_ = rounds_;
    looked_ = now;
    if (now - began_ < period_) return false;
    began_ = now;
    return true;
  }

 private:
  static constexpr int64_t kMaxRounds = 1 << 16;

  const Clock::duration period_;
  TimePoint began_;
  TimePoint looked_;
  int64_t rounds_ = 1;  // between two readings of the clock
  int64_t rounds_left_ = 1;
};

}  // namespace dtrain
