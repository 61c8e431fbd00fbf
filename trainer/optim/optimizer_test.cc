#include "trainer/optim/optimizer.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "base/random.h"

namespace dtrain {
namespace {

std::vector<float> Normals(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(CounterRandom(seed).Normal(i));
  return values;
}

Config WithLearningRate(double learning_rate) {
  Config config;
  config.train.optimizer.learning_rate = learning_rate;
  return config;
}

const std::byte* Bytes(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST_CASE("sgd: a step is the plain loop, bit for bit") {
  const std::vector<float> weights = Normals(1001, 1), gradient = Normals(1001, 2);
  std::vector<float> updated(1001);
  MakeOptimizer(WithLearningRate(0.03), 1001)
      ->Apply(0, weights.data(), updated.data(), Bytes(gradient), 1001);
  const float learning_rate = 0.03f;
  for (size_t i = 0; i < weights.size(); ++i) {
    const float step = learning_rate * gradient[i];
    CHECK(updated[i] == weights[i] - step);
  }
}

TEST_CASE("sgd: in place and into a fresh buffer give the same bits") {
  const std::vector<float> weights = Normals(333, 1), gradient = Normals(333, 2);
  std::vector<float> fresh(333), same = weights;
  const auto optimizer = MakeOptimizer(WithLearningRate(0.1), 333);
  optimizer->Apply(0, weights.data(), fresh.data(), Bytes(gradient), 333);
  optimizer->Apply(0, same.data(), same.data(), Bytes(gradient), 333);
  CHECK(same == fresh);
}

TEST_CASE("sgd: many steps give the same bits on one ps and cut over three") {
  std::vector<float> whole = Normals(100, 1), parts = whole;
  const int64_t cuts[] = {0, 17, 58, 100};
  const auto one = MakeOptimizer(WithLearningRate(0.1), 100);
  for (uint64_t step = 0; step < 20; ++step) {
    const std::vector<float> gradient = Normals(100, 10 + step);
    one->Apply(0, whole.data(), whole.data(), Bytes(gradient), 100);
    for (int ps = 0; ps < 3; ++ps) {
      const int64_t begin = cuts[ps], size = cuts[ps + 1] - begin;
      MakeOptimizer(WithLearningRate(0.1), size)
          ->Apply(0, parts.data() + begin, parts.data() + begin, Bytes(gradient) + begin * 4, size);
    }
  }
  CHECK(parts == whole);
}

TEST_CASE("sgd: a gradient inside a frame may lie at an odd address") {
  const std::vector<float> weights = Normals(50, 1), gradient = Normals(50, 2);
  std::vector<std::byte> frame(3 + 50 * sizeof(float));
  std::memcpy(frame.data() + 3, gradient.data(), 50 * sizeof(float));
  std::vector<float> from_frame(50), expected(50);
  const auto optimizer = MakeOptimizer(WithLearningRate(0.1), 50);
  optimizer->Apply(0, weights.data(), from_frame.data(), frame.data() + 3, 50);
  optimizer->Apply(0, weights.data(), expected.data(), Bytes(gradient), 50);
  CHECK(from_frame == expected);
}

}  // namespace
}  // namespace dtrain
