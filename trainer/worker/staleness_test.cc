#include "trainer/worker/staleness.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("staleness: alone it is 0; updates of others in between are counted") {
  Staleness staleness(1);
  staleness.OnPulled(10);
  staleness.OnPushed();
  staleness.OnApplied(11);
  CHECK(staleness.TakeMean() == 0);
  staleness.OnPushed();
  staleness.OnApplied(15);  // 12, 13 and 14 were others'
  CHECK(staleness.TakeMean() == 3);
}

TEST_CASE("staleness: with open exchanges each gradient counts from its own weights") {
  Staleness staleness(3);
  staleness.OnPulled(0);
  for (int i = 0; i < 3; ++i) staleness.OnPushed();  // all three of version 0
  staleness.OnApplied(1);
  CHECK(staleness.TakeMean() == 0);
  staleness.OnPushed();  // of version 1
  staleness.OnApplied(2);
  staleness.OnApplied(3);
  CHECK(staleness.TakeMean() == 1.5);
  staleness.OnApplied(4);
  CHECK(staleness.TakeMean() == 2);
}

TEST_CASE("staleness: without an answer there is none") {
  Staleness staleness(1);
  staleness.OnPushed();
  CHECK_FALSE(staleness.TakeMean().has_value());
}

}  // namespace
}  // namespace dtrain
