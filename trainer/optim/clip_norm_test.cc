#include "trainer/optim/clip_norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dtrain {
namespace {

double PlainNorm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

std::vector<float> Clipped(std::vector<float> values, double clip_norm) {
  ClipToNorm(clip_norm, {values.data(), static_cast<int64_t>(values.size())});
  return values;
}

std::vector<float> Values(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(std::ldexp(static_cast<float>(i * 37 % 101) - 50, i % 13 - 6));
  }
  return values;
}

TEST_CASE("clip norm: a larger gradient is scaled to the norm, each element as the plain formula says") {
  for (const int count : {1, 2, 31, 33, 5000}) {
    const std::vector<float> values = Values(count);
    const double norm = PlainNorm(values);
    for (const double clip_norm : {norm * 0.999, norm / 3, 1e-3}) {
      const std::vector<float> clipped = Clipped(values, clip_norm);
      CHECK(std::abs(PlainNorm(clipped) / clip_norm - 1) <= 0x1p-22);
      for (size_t i = 0; i < values.size(); ++i) {
        const double expected = static_cast<double>(values[i]) * clip_norm / norm;
        CHECK(std::abs(clipped[i] - expected) <= 0x1p-22 * std::abs(expected));
      }
    }
  }
}

TEST_CASE("clip norm: 3 and 4 are cut to 0.6 and 0.8") {
  CHECK(Clipped({3, 4}, 1) == std::vector<float>{3 * 0.2f, 4 * 0.2f});
}

TEST_CASE("clip norm: a gradient of that norm, a smaller one, zeros and nothing stay as they are") {
  CHECK(Clipped({3, 4}, 5) == std::vector<float>{3, 4});
  CHECK(Clipped(Values(33), 1e9) == Values(33));
  CHECK(Clipped({0, -0.0f}, 1e-30) == std::vector<float>{0, -0.0f});
  CHECK(Clipped({}, 1).empty());
}

TEST_CASE("clip norm: the factor has the same bits in any order of the elements") {
  std::vector<float> values = Values(5000);
  const float first = Clipped(values, 1)[0] / values[0];
  for (int turn = 0; turn < 10; ++turn) {
    std::rotate(values.begin(), values.begin() + 1, values.end());
    std::vector<float> expected = values;
    gpu::SquareSum squares;
    gpu::Stream stream;
    gpu::AddSquares(stream, reinterpret_cast<const std::byte*>(values.data()), 5000, &squares);
    CHECK(static_cast<float>(ClipScale(squares, 1)) == doctest::Approx(first).epsilon(1e-6));
    for (float& value : expected) value *= static_cast<float>(ClipScale(squares, 1));
    CHECK(Clipped(values, 1) == expected);
  }
}

TEST_CASE("clip norm: a gradient that is not finite stays as it is") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(Clipped({100, inf, -inf}, 1) == std::vector<float>{100, inf, -inf});
  const std::vector<float> with_nan = Clipped({100, std::nanf(""), -7}, 1);
  CHECK(with_nan[0] == 100);
  CHECK(std::isnan(with_nan[1]));
  CHECK(with_nan[2] == -7);
}

TEST_CASE("clip norm: the largest floats are clipped too") {
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> clipped = Clipped(std::vector<float>(4, most), 1e30);
  for (const float value : clipped) CHECK(value == doctest::Approx(0.5e30).epsilon(1e-6));
}

}  // namespace
}  // namespace dtrain
