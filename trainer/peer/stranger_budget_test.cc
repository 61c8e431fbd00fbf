#include "trainer/peer/stranger_budget.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

using std::chrono::microseconds;

constexpr microseconds kMessage{100};

// How many of the messages that come one after the other until `now` + `time` are read. What is dropped takes
// a microsecond.
int ReadIn(StrangerBudget& budget, TimePoint* now, Clock::duration time) {
  int read = 0;
  for (const TimePoint end = *now + time; *now < end;) {
    const bool allowed = budget.Allows(*now);
    *now += allowed ? kMessage : microseconds(1);
    if (!allowed) continue;
    budget.Used(kMessage);
    ++read;
  }
  return read;
}

TEST_CASE("stranger budget: a flood gets what is saved, and then a tenth of the time") {
  StrangerBudget budget;
  TimePoint now{std::chrono::hours(1)};
  const int first = ReadIn(budget, &now, milliseconds(100));
  CHECK(first * kMessage <= StrangerBudget::kMaxSaved + milliseconds(10) + kMessage);
  const int later = ReadIn(budget, &now, milliseconds(1000));
  CHECK(later * kMessage >= milliseconds(99));
  CHECK(later * kMessage <= milliseconds(101));
}

TEST_CASE("stranger budget: no more is saved than for a short while, however long nobody comes") {
  StrangerBudget budget;
  TimePoint now{std::chrono::hours(1)};
  ReadIn(budget, &now, milliseconds(100));
  now += std::chrono::hours(24);
  REQUIRE(budget.Allows(now));
  budget.Used(StrangerBudget::kMaxSaved);
  CHECK_FALSE(budget.Allows(now));
}

TEST_CASE("stranger budget: a message that took long is paid for, but not for long") {
  StrangerBudget budget;
  TimePoint now{std::chrono::hours(1)};
  REQUIRE(budget.Allows(now));
  budget.Used(std::chrono::seconds(20));  // the process was stopped
  CHECK_FALSE(budget.Allows(now += milliseconds(49)));
  CHECK(budget.Allows(now += milliseconds(2)));
}

}  // namespace
}  // namespace dtrain
