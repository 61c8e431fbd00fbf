#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

constexpr OptimizerKind kKinds[] = {
    OptimizerKind::kSgd,  OptimizerKind::kMomentum, OptimizerKind::kAdagrad, OptimizerKind::kRmsprop,
    OptimizerKind::kAdam, OptimizerKind::kAdamw,    OptimizerKind::kFtrl};

std::vector<float> Normals(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(CounterRandom(seed).Normal(i));
  return values;
}

const std::byte* Bytes(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

Config With(OptimizerKind kind) {
  Config config;
  config.train.optimizer.kind = kind;
  config.train.optimizer.learning_rate = 0.1;
  return config;
}

// With everything that can be added to a kind.
Config Elaborate(OptimizerKind kind) {
  Config config = With(kind);
  OptimizerConfig& optimizer = config.train.optimizer;
  optimizer.nesterov = true;
  optimizer.beta = 1;
  optimizer.l1 = 0.01;
  optimizer.l2 = 0.02;
  optimizer.clip_value = 1.5;
  optimizer.schedule.kind = ScheduleKind::kCosine;
  optimizer.schedule.decay_steps = 15;
  optimizer.schedule.warmup_steps = 4;
  return config;
}

// A vector of weights that is cut into ranges, each with an optimizer of its own, as on so many ps.
class Cut {
 public:
  Cut(const Config& config, std::vector<float> weights, std::vector<int64_t> cuts)
      : weights_(std::move(weights)), cuts_(std::move(cuts)) {
    for (size_t i = 0; i + 1 < cuts_.size(); ++i) {
      optimizers_.push_back(MakeOptimizer(config, cuts_[i + 1] - cuts_[i]));
    }
  }
  void Step(const UpdateStep& step, const std::byte* gradient, bool fresh) {
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      const int64_t begin = cuts_[i], size = cuts_[i + 1] - begin;
      const std::byte* const part = gradient + begin * static_cast<int64_t>(sizeof(float));
      std::vector<float> updated(static_cast<size_t>(size));
      float* const weights = weights_.data() + begin;
      optimizers_[i]->Apply(step, 0, weights, fresh ? updated.data() : weights, part, size);
      if (fresh) std::copy(updated.begin(), updated.end(), weights);
    }
  }
  const std::vector<float>& weights() const { return weights_; }

 private:
  std::vector<float> weights_;
  std::vector<int64_t> cuts_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

TEST_CASE("sgd: a step is the plain loop, bit for bit") {
  const std::vector<float> weights = Normals(1001, 1), gradient = Normals(1001, 2);
  std::vector<float> updated(1001);
  MakeOptimizer(With(OptimizerKind::kSgd), 1001)
      ->Apply({}, 0, weights.data(), updated.data(), Bytes(gradient), 1001);
  for (size_t i = 0; i < weights.size(); ++i) {
    const float step = 0.1f * gradient[i];
    CHECK(updated[i] == weights[i] - step);
  }
}

TEST_CASE("optimizer: many steps give the same bits for every cut, fresh buffer and odd address") {
  const int64_t n = 67;
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    for (const Config& config : {With(kind), Elaborate(kind)}) {
      for (int64_t cut = 0; cut <= n; ++cut) {
        Cut whole(config, Normals(n, 1), {0, n});
        Cut parts(config, Normals(n, 1), {0, cut, n});
        for (int64_t number = 1; number <= 20; ++number) {
          const std::vector<float> gradient = Normals(n, 10 + static_cast<uint64_t>(number));
          std::vector<std::byte> frame(3 + n * sizeof(float));
          std::memcpy(frame.data() + 3, gradient.data(), n * sizeof(float));
          whole.Step({number}, Bytes(gradient), false);
          parts.Step({number}, frame.data() + 3, number % 2 == 0);
        }
        CHECK(parts.weights() == whole.weights());
      }
    }
  }
}

TEST_CASE("optimizer: blocks of one range, each with its own number, are as ranges of their own") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    const Config config = Elaborate(kind);
    std::vector<float> weights = Normals(50, 1);
    Cut apart(config, weights, {0, 20, 50});
    const auto one = MakeOptimizer(config, 50);
    for (int64_t number = 1; number <= 5; ++number) {
      const std::vector<float> gradient = Normals(50, 5 + static_cast<uint64_t>(number));
      apart.Step({number}, Bytes(gradient), false);
      one->Apply({number}, 20, weights.data() + 20, weights.data() + 20, Bytes(gradient) + 20 * 4, 30);
      one->Apply({number}, 0, weights.data(), weights.data(), Bytes(gradient), 20);
    }
    CHECK(weights == apart.weights());
  }
}

TEST_CASE("optimizer: the sum of four gradients at scale 1/4 is the gradient") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    const std::vector<float> gradient = Normals(40, 2);
    std::vector<float> sum = gradient;
    for (float& value : sum) value *= 4;
    Cut one(With(kind), Normals(40, 1), {0, 40}), four(With(kind), Normals(40, 1), {0, 40});
    for (int64_t number = 1; number <= 3; ++number) {
      one.Step({number}, Bytes(gradient), false);
      four.Step({number, 0.25f}, Bytes(sum), false);
    }
    CHECK(four.weights() == one.weights());
  }
}

TEST_CASE("optimizer: one whose slots were read and written back goes on with the same bits") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    const Config config = Elaborate(kind);
    std::vector<float> weights = Normals(40, 1), restored;
    const auto first = MakeOptimizer(config, 40), second = MakeOptimizer(config, 40);
    for (int64_t number = 1; number <= 10; ++number) {
      const std::vector<float> gradient = Normals(40, 5 + static_cast<uint64_t>(number));
      if (number == 6) {
        restored = weights;
        const std::vector<Slot> from = first->Slots(), to = second->Slots();
        for (size_t i = 0; i < from.size(); ++i) {
          CHECK(from[i].name == to[i].name);
          std::copy(from[i].values.begin(), from[i].values.end(), to[i].values.begin());
        }
      }
      first->Apply({number}, 0, weights.data(), weights.data(), Bytes(gradient), 40);
      if (number < 6) continue;
      second->Apply({number}, 0, restored.data(), restored.data(), Bytes(gradient), 40);
    }
    CHECK(restored == weights);
  }
}

TEST_CASE("optimizer: updates of a new run that count earlier ones are as the updates after those") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    const auto make = [&] { return Cut(With(kind), Normals(7, 1), {0, 7}); };
    Cut whole = make(), parts = make();
    for (int64_t step = 1; step <= 9; ++step) {
      const std::vector<float> gradient = Normals(7, static_cast<uint64_t>(step) + 10);
      UpdateStep counted;
      counted.number = step;
      whole.Step(counted, Bytes(gradient), false);
      if (step > 4) {
        counted.number = step - 4;
        counted.earlier = 4;
      }
      parts.Step(counted, Bytes(gradient), false);
      CHECK(parts.weights() == whole.weights());
    }
  }
}

TEST_CASE("optimizer: slots have names and one number for each element") {
  const std::vector<std::vector<std::string>> names = {
      {}, {"velocity"}, {"accumulator"}, {"mean_square"}, {"m", "v"}, {"m", "v"}, {"z", "n"}};
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    std::vector<std::string> found;
    const auto optimizer = MakeOptimizer(With(kKinds[i]), 7);
    for (const Slot& slot : optimizer->Slots()) {
      found.push_back(slot.name);
      CHECK(slot.values.size == 7);
    }
    CHECK(found == names[i]);
  }
}

TEST_CASE("optimizer: a cosine schedule that has come down to 0 moves nothing any more") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Config config = With(kind);
    config.train.optimizer.schedule.kind = ScheduleKind::kCosine;
    config.train.optimizer.schedule.decay_steps = 3;
    Cut run(config, Normals(40, 1), {0, 40});
    std::vector<float> at_the_end;
    for (int64_t number = 1; number <= 10; ++number) {
      run.Step({number}, Bytes(Normals(40, 5 + static_cast<uint64_t>(number))), false);
      if (number == 3) at_the_end = run.weights();
    }
    // ftrl computes the same weights anew from sums: a few roundings.
    for (size_t i = 0; i < 40; ++i) CHECK(run.weights()[i] == doctest::Approx(at_the_end[i]).epsilon(1e-5));
  }
}

OptimizerConfig WithSchedule(ScheduleKind kind, int64_t warmup_steps = 0) {
  OptimizerConfig optimizer;
  optimizer.learning_rate = 0.8;
  optimizer.schedule.kind = kind;
  optimizer.schedule.decay_steps = 10;
  optimizer.schedule.decay_rate = 0.5;
  optimizer.schedule.end_learning_rate = 0.2;
  optimizer.schedule.warmup_steps = warmup_steps;
  return optimizer;
}

TEST_CASE("schedule: constant is the learning rate at every update") {
  for (const int64_t number : {1, 2, 1000000}) {
    CHECK(LearningRate(WithSchedule(ScheduleKind::kConstant), number) == 0.8);
  }
}

TEST_CASE("schedule: step halves the rate after every ten updates") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kStep);
  CHECK(LearningRate(optimizer, 1) == 0.8);
  CHECK(LearningRate(optimizer, 10) == 0.8);
  CHECK(LearningRate(optimizer, 11) == 0.4);
  CHECK(LearningRate(optimizer, 31) == 0.1);
}

TEST_CASE("schedule: exponential halves the rate smoothly") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kExponential);
  CHECK(LearningRate(optimizer, 1) == 0.8);
  CHECK(LearningRate(optimizer, 6) == doctest::Approx(0.8 * std::sqrt(0.5)));
  CHECK(LearningRate(optimizer, 11) == doctest::Approx(0.4));
}

TEST_CASE("schedule: inverse time divides by 1 + decay_rate * n / decay_steps") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kInverseTime);
  CHECK(LearningRate(optimizer, 1) == 0.8);
  CHECK(LearningRate(optimizer, 11) == doctest::Approx(0.8 / 1.5));
  CHECK(LearningRate(optimizer, 41) == doctest::Approx(0.8 / 3));
}

TEST_CASE("schedule: cosine goes down to the end rate in decay_steps and stays there") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kCosine);
  CHECK(LearningRate(optimizer, 1) == doctest::Approx(0.8));
  CHECK(LearningRate(optimizer, 6) == doctest::Approx(0.5));
  CHECK(LearningRate(optimizer, 11) == 0.2);
  CHECK(LearningRate(optimizer, 1000) == 0.2);
}

TEST_CASE("schedule: the warm-up grows linearly to the full rate, and the schedule begins after it") {
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kExponential,
                                  ScheduleKind::kInverseTime, ScheduleKind::kCosine}) {
    const OptimizerConfig warm = WithSchedule(kind, 4), cold = WithSchedule(kind);
    CHECK(LearningRate(warm, 1) == doctest::Approx(0.2));
    CHECK(LearningRate(warm, 3) == doctest::Approx(0.6));
    CHECK(LearningRate(warm, 4) == 0.8);
    for (int64_t number = 1; number < 30; ++number) {
      CHECK(LearningRate(warm, number + 4) == LearningRate(cold, number));
    }
  }
}

TEST_CASE("schedule: a rate that grows without end stays finite") {
  OptimizerConfig optimizer = WithSchedule(ScheduleKind::kStep);
  optimizer.schedule.decay_rate = 1e30;
  CHECK(LearningRate(optimizer, 1000000) == 1e30);
}

TEST_CASE("whole power: is the product, also of many factors") {
  CHECK(WholePower(0.9, 0) == 1);
  CHECK(WholePower(0.9, 1) == 0.9);
  CHECK(WholePower(0.9, 5) == doctest::Approx(0.59049).epsilon(1e-14));
  CHECK(WholePower(0.999, 100000) == doctest::Approx(std::pow(0.999, 100000)).epsilon(1e-10));
  CHECK(WholePower(0.5, int64_t{1} << 60) == 0);
}

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
