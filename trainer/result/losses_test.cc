#include "trainer/result/losses.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("recent losses: the last hundred count, and of none there is no mean") {
  RecentLosses losses;
  CHECK(losses.empty());
  CHECK(std::isnan(losses.Mean()));
  losses.Add(1);
  losses.Add(2);
  CHECK(losses.Mean() == 1.5);
  for (int i = 0; i < 50; ++i) losses.Add(1000);
  for (int i = 0; i < 100; ++i) losses.Add(static_cast<float>(i));
  CHECK(losses.Mean() == 49.5);
  CHECK(losses.Latest(2) == std::vector<float>{98, 99});
  CHECK(losses.Latest(1000).size() == 100);
}

}  // namespace
}  // namespace dtrain
