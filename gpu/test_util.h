// Help for the tests of operations: random inputs, outputs between guard words, the comparison with ref.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace dtrain::gpu::test {

// Rows, inputs and outputs of layers and tables: none, one, round a vector's width, round BLAS's limits.
constexpr int64_t kOddSizes[] = {0, 1, 2, 3, 4, 7, 31, 33, 100};
// Elements for more than one turn of each block of a device that this processor plays.
constexpr int64_t kManyBlocks = 300007;

inline std::vector<float> Normals(int64_t count, std::string_view stream, double stddev = 1) {
  const CounterRandom random = CounterRandom(7).Stream(stream);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(stddev * random.Normal(i));
  return values;
}

inline std::vector<int32_t> Classes(int64_t count, int64_t classes) {
  const CounterRandom random = CounterRandom(7).Stream("classes");
  std::vector<int32_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(random.Below(i, classes));
  return values;
}

inline std::vector<double> Doubles(const std::vector<float>& values) {
  return std::vector<double>(values.begin(), values.end());
}

// The largest |a - b| / (|b| + floor) of two equally long ranges; infinite where one is not a number.
template <typename A, typename B>
double LargestError(const A& values, const B& expected, double floor) {
  double largest = 0;
  auto right = expected.begin();
  for (const auto value : values) {
    const double error = std::abs(static_cast<double>(value) - *right) / (std::abs(*right) + floor);
    ++right;
    if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return largest;
}

}  // namespace dtrain::gpu::test
