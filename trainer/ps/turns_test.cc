#include "trainer/ps/turns.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

const TimePoint kNow = TimePoint() + milliseconds(1000);

// Three workers on one host with processors for two of them, and one elsewhere.
Turns TwoOfThree() {
  Turns turns(4);
  for (const int worker : {0, 1, 2}) turns.Place(worker, "here", 2);
  turns.Place(3, "there", 1);
  return turns;
}

TEST_CASE("turns: as many workers of a host compute as it has processors for") {
  Turns turns = TwoOfThree();
  turns.Begin(0, kNow);
  CHECK(turns.Free(1, kNow));
  turns.Begin(1, kNow);
  CHECK_FALSE(turns.Free(2, kNow));
  CHECK(turns.Free(3, kNow));  // another host
  turns.End(0);
  CHECK(turns.Free(2, kNow));
}

TEST_CASE("turns: a worker that computes for long keeps nobody waiting") {
  Turns turns = TwoOfThree();
  turns.Begin(0, kNow);
  turns.Begin(1, kNow + milliseconds(1));
  CHECK_FALSE(turns.Free(2, kNow + Turns::kLongest - milliseconds(1)));
  CHECK(turns.Free(2, kNow + Turns::kLongest));
}

TEST_CASE("turns: a worker that says nothing of its host is never kept waiting") {
  Turns turns(2);
  turns.Begin(0, kNow);
  CHECK(turns.Free(1, kNow));
}

TEST_CASE("turns: one worker always has a turn") {
  Turns turns(1);
  turns.Place(0, "here", 1);
  CHECK(turns.Free(0, kNow));
}

}  // namespace
}  // namespace dtrain
