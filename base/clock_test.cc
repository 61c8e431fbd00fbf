#include "base/clock.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <time.h>

namespace dtrain {
namespace {

TEST_CASE("clock: a time for programs has its distance from UTC, whole and in minutes, on both sides") {
  const auto at = [](const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
    return Rfc3339(1'000'000'000'123'456'789);
  };
  CHECK(at("UTC") == "2001-09-09T01:46:40.123+00:00");
  CHECK(at("XXX-5:45") == "2001-09-09T07:31:40.123+05:45");
  CHECK(at("XXX3:30") == "2001-09-08T22:16:40.123-03:30");
  unsetenv("TZ");
  tzset();
}

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
