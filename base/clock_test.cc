#include "base/clock.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <time.h>

namespace dtrain {
namespace {

// A loop of rounds that take `round` each, by a clock of its own.
struct Loop {
  TimePoint now;
  int looks = 0;
  int periods = 0;

  void Run(PacedTimer* timer, std::chrono::nanoseconds round, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      now += round;
      if (!timer->Tick()) continue;
      ++looks;
      if (timer->Passed(now)) ++periods;
    }
  }
};

TEST_CASE("wall text: the local time with its offset from UTC") {
  const auto text_in = [](const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
    return WallText(1767225600123000000);
  };
  CHECK(text_in("UTC") == "2026-01-01T00:00:00.123+00:00");
  CHECK(text_in("XXX-05:30") == "2026-01-01T05:30:00.123+05:30");
  CHECK(text_in("XXX+03:30") == "2025-12-31T20:30:00.123-03:30");
  unsetenv("TZ");
  tzset();
}

TEST_CASE("paced timer: a fast loop reads the clock about eight times in a period") {
  Loop loop;
  PacedTimer timer(milliseconds(200), loop.now);
  loop.Run(&timer, std::chrono::microseconds(10), 1000000);  // 10 s
  CHECK(loop.periods >= 44);
  CHECK(loop.periods <= 50);
  CHECK(loop.looks <= 50 * 9 + 20);
}

TEST_CASE("paced timer: a loop slower than the period is due in every round") {
  Loop loop;
  PacedTimer timer(milliseconds(200), loop.now);
  loop.Run(&timer, milliseconds(300), 20);
  CHECK(loop.periods == 20);
}

TEST_CASE("paced timer: a loop that slows down is noticed after the rounds of an eighth of a period") {
  Loop loop;
  PacedTimer timer(milliseconds(200), loop.now);
  loop.Run(&timer, std::chrono::microseconds(100), 10000);
  loop.periods = 0;
  loop.Run(&timer, milliseconds(10), 250 + 20 * 8);  // 250 rounds were still to come at the old pace
  CHECK(loop.periods >= 7);
}

}  // namespace
}  // namespace dtrain
