#include "trainer/worker/recent_loss.h"

#include <doctest/doctest.h>

#include <cmath>

namespace dtrain {
namespace {

TEST_CASE("recent loss: of none there is no mean, of some it is theirs") {
  RecentLoss recent;
  CHECK(std::isnan(recent.Mean()));
  recent.Add(1, 1);
  recent.Add(2, 1);
  CHECK(recent.Mean() == 1.5);
}

TEST_CASE("recent loss: only the last hundred count") {
  RecentLoss recent;
  for (int i = 0; i < 50; ++i) recent.Add(1000, 1);
  for (int i = 0; i < 100; ++i) recent.Add(3, 1);
  CHECK(recent.Mean() == 3);
  CHECK(recent.count() == 150);
}

TEST_CASE("recent loss: the first step is kept apart, or as many small ones as have twenty rows") {
  RecentLoss large;
  CHECK(std::isnan(large.FirstMean()));
  large.Add(2.3f, 64);
  for (int i = 0; i < 300; ++i) large.Add(1000, 64);
  CHECK(large.FirstMean() == doctest::Approx(2.3));
  RecentLoss small;
  small.Add(5, 8);
  CHECK(small.FirstMean() == 5);
  small.Add(3, 8);
  small.Add(1, 4);
  small.Add(1000, 8);
  CHECK(small.FirstMean() == doctest::Approx((5 * 8 + 3 * 8 + 1 * 4) / 20.0));
}

}  // namespace
}  // namespace dtrain
