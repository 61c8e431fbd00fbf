#include "trainer/data/synthetic_linear.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace dtrain {
namespace {

struct Rows {
  std::vector<float> inputs, targets;
};

Rows Read(const SyntheticLinear& set, int64_t first, int64_t count) {
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  Rows read{std::vector<float>(count * set.inputs()), std::vector<float>(count)};
  set.Gather(rows.data(), count, read.inputs.data(), nullptr, read.targets.data());
  return read;
}

TEST_CASE("synthetic linear: a row is the same alone and among others, near and far") {
  const SyntheticLinear set(1, "train", 3, std::nullopt);
  const Rows together = Read(set, 1000000000000, 5);
  for (int64_t i = 0; i < 5; ++i) {
    const Rows alone = Read(set, 1000000000000 + i, 1);
    CHECK(alone.targets[0] == together.targets[i]);
    for (int64_t j = 0; j < 3; ++j) CHECK(alone.inputs[j] == together.inputs[i * 3 + j]);
  }
}

TEST_CASE("synthetic linear: seeds and parts give different rows") {
  const Rows base = Read(SyntheticLinear(1, "train", 1, std::nullopt), 0, 10);
  CHECK(Read(SyntheticLinear(2, "train", 1, std::nullopt), 0, 10).inputs != base.inputs);
  CHECK(Read(SyntheticLinear(1, "test", 1, std::nullopt), 0, 10).inputs != base.inputs);
}

TEST_CASE("synthetic linear: inputs are standard normal and targets follow the line") {
  constexpr int64_t kRows = 100000;
  for (const int64_t inputs : {1, 2}) {
    const Rows rows = Read(SyntheticLinear(1, "train", inputs, std::nullopt), 0, kRows);
    double sum = 0, square = 0, noise = 0, noise_square = 0, cross = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      double x = 0;
      for (int64_t j = 0; j < inputs; ++j) x += rows.inputs[i * inputs + j];
      const double error = rows.targets[i] - (2 * x + 10);
      sum += x;
      square += x * x;
      noise += error;
      noise_square += error * error;
      cross += error * x;
    }
    // Four standard deviations of each mean: 4 / sqrt(100000) = 0.013 times the value's own deviation.
    CHECK(std::abs(sum / kRows) < 0.013 * std::sqrt(inputs));
    CHECK(std::abs(square / kRows - inputs) < 0.013 * std::sqrt(2.0) * inputs);
    CHECK(std::abs(noise / kRows) < 0.013 * 0.33);
    CHECK(std::abs(std::sqrt(noise_square / kRows) - 0.33) < 0.013 * 0.33);
    CHECK(std::abs(cross / kRows) < 0.013 * 0.33 * std::sqrt(inputs));
  }
}

}  // namespace
}  // namespace dtrain
