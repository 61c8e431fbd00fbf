#include "base/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

namespace dtrain {
namespace {

TEST_CASE("random: a value depends on seed, stream and counter alone") {
  const CounterRandom a(7), b(7), c(8);
  CHECK(a.Bits(5) == b.Bits(5));
  CHECK(a.Bits(5) != c.Bits(5));
  CHECK(a.Stream("weights/W1").Bits(5) != a.Stream("biases/b1").Bits(5));
  CHECK(a.Stream(1).Bits(5) != a.Stream(2).Bits(5));
}

TEST_CASE("random: normal values have mean 0, variance 1 and normal tails") {
  const CounterRandom random(1);
  constexpr int kCount = 200000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.Normal(static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
    beyond_two += std::fabs(x) > 2;
  }
  // Four standard errors: 4 / sqrt(n) for the mean, 4 sqrt(2 / n) for the variance.
  CHECK(std::fabs(sum / kCount) < 0.009);
  CHECK(std::fabs(squares / kCount - 1) < 0.013);
  CHECK(beyond_two / double(kCount) == doctest::Approx(0.0455).epsilon(0.05));
}

TEST_CASE("random: Below covers its range evenly") {
  const CounterRandom random(3);
  int counts[7] = {};
  for (uint64_t i = 0; i < 70000; ++i) ++counts[random.Below(i, 7)];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 400);
}

}  // namespace
}  // namespace dtrain
