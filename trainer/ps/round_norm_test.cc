#include "trainer/ps/round_norm.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace dtrain {
namespace {

gpu::SquareSum SquaresOf(const std::vector<float>& values) {
  gpu::Stream stream;
  gpu::SquareSum sum;
  gpu::AddSquares(stream, reinterpret_cast<const std::byte*>(values.data()),
                  static_cast<int64_t>(values.size()), &sum);
  return sum;
}

TEST_CASE("round norm: one ps alone knows the scale at once") {
  RoundNorm norm(1, 1);
  CHECK_FALSE(norm.Scale(0).has_value());
  norm.Begin(2, SquaresOf({3, 4}));
  CHECK(norm.Scale(2) == 0.2);
  norm.Begin(3, SquaresOf({0.3f, 0.4f}));
  CHECK(norm.Scale(3) == 1.0);
}

TEST_CASE("round norm: the scale is that of all parts together, in whatever order they come") {
  for (const bool back : {false, true}) {
    RoundNorm norm(3, 1);
    norm.Begin(2, SquaresOf({3}));
    CHECK_FALSE(norm.Add(2, back ? 2 : 1, SquaresOf(back ? std::vector<float>{12} : std::vector<float>{4})));
    CHECK_FALSE(norm.Scale(2).has_value());
    CHECK(norm.Add(2, back ? 1 : 2, SquaresOf(back ? std::vector<float>{4} : std::vector<float>{12})));
    CHECK(norm.Scale(2) == 1.0 / 13);
  }
}

TEST_CASE("round norm: a part that comes again, of another round or of nobody changes nothing") {
  RoundNorm norm(3, 1);
  norm.Begin(5, SquaresOf({3}));
  CHECK_FALSE(norm.Add(5, 1, SquaresOf({4})));
  CHECK_FALSE(norm.Add(5, 1, SquaresOf({4})));
  for (const uint64_t round : {uint64_t{0}, uint64_t{4}, uint64_t{6}, std::numeric_limits<uint64_t>::max()}) {
    CHECK_FALSE(norm.Add(round, 2, SquaresOf({1000})));
  }
  CHECK_FALSE(norm.Add(5, 3, SquaresOf({1000})));
  CHECK_FALSE(norm.Scale(5).has_value());
  CHECK(norm.Add(5, 2, SquaresOf({12})));
  CHECK(norm.Scale(5) == 1.0 / 13);
}

TEST_CASE("round norm: the latest scale is known until the next is, for a ps that asks again") {
  RoundNorm norm(2, 1);
  norm.Begin(5, SquaresOf({3}));
  CHECK(norm.Add(5, 1, SquaresOf({4})));
  norm.Begin(6, SquaresOf({6}));
  CHECK(norm.Scale(5) == 0.2);
  CHECK_FALSE(norm.Scale(6).has_value());
  CHECK(norm.Add(6, 1, SquaresOf({8})));
  CHECK(norm.Scale(6) == 0.1);
  CHECK_FALSE(norm.Scale(5).has_value());
}

TEST_CASE("round norm: one value that is not finite, on whatever ps, leaves all unscaled") {
  const float inf = std::numeric_limits<float>::infinity();
  RoundNorm norm(2, 1);
  norm.Begin(2, SquaresOf({300}));
  CHECK(norm.Add(2, 1, SquaresOf({1, inf})));
  CHECK(norm.Scale(2) == 1.0);
}

}  // namespace
}  // namespace dtrain
