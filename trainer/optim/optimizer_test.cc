#include "trainer/optim/optimizer.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/random.h"

namespace dtrain {
namespace {

constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd,     OptimizerKind::kMomentum,
                                    OptimizerKind::kAdagrad, OptimizerKind::kRmsprop,
                                    OptimizerKind::kAdam,    OptimizerKind::kFtrl};

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

TEST_CASE("optimizer: slots have names and one number for each element") {
  const std::vector<std::vector<std::string>> names = {
      {}, {"velocity"}, {"accumulator"}, {"mean_square"}, {"m", "v"}, {"z", "n"}};
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

}  // namespace
}  // namespace dtrain
