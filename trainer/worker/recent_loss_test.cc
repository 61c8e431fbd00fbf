#include "trainer/worker/recent_loss.h"

#include <doctest/doctest.h>

#include <cmath>

namespace dtrain {
namespace {

TEST_CASE("recent loss: of none there is no mean, of some it is theirs") {
  RecentLoss recent;
  CHECK(std::isnan(recent.Mean()));
  recent.Add(1);
  recent.Add(2);
  CHECK(recent.Mean() == 1.5);
}

TEST_CASE("recent loss: only the last hundred count") {
  RecentLoss recent;
  for (int i = 0; i < 50; ++i) recent.Add(1000);
  for (int i = 0; i < 100; ++i) recent.Add(3);
  CHECK(recent.Mean() == 3);
  CHECK(recent.count() == 150);
}

}  // namespace
}  // namespace dtrain
