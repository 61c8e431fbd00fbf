// adamw against torch.optim.AdamW's rule, as plain loops in double.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/load_test_util.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

constexpr double kCurvature[] = {1.0, 0.5, 2.0, 0.1, 3.0};
constexpr double kTarget[] = {0.25, 1.0, -1.0, 2.0, 0.5};
constexpr int64_t kSize = 5;

Config Load(const std::string& settings) {
  const std::string path = WriteTestFile("adamw.yaml",
                                         "cluster: {ps: [\"localhost:1\"], worker: [\"localhost:2\"]}\n"
                                         "model: {kind: linear, inputs: 4}\n"
                                         "data: {train: {format: synthetic, name: linear}}\n"
                                         "train:\n  steps: 10\n  optimizer: " +
                                             settings + "\n");
  return LoadConfig(path, {}, {});
}

// torch.optim.AdamW: param.mul_(1 - lr * weight_decay), then the step of Adam.
class TorchAdamw {
 public:
  explicit TorchAdamw(const OptimizerConfig& config) : config_(config) {}

  void Step(int64_t number, const std::vector<double>& gradient, std::vector<double>* weights) {
    const double rate = config_.learning_rate, t = static_cast<double>(number);
    for (size_t i = 0; i < weights->size(); ++i) {
      double& weight = (*weights)[i];
      weight *= 1 - rate * config_.weight_decay;
      m_[i] = config_.beta1 * m_[i] + (1 - config_.beta1) * gradient[i];
      v_[i] = config_.beta2 * v_[i] + (1 - config_.beta2) * gradient[i] * gradient[i];
      const double root = std::sqrt(v_[i]) / std::sqrt(1 - std::pow(config_.beta2, t));
      weight -= rate / (1 - std::pow(config_.beta1, t)) * m_[i] / (root + config_.epsilon);
    }
  }

 private:
  const OptimizerConfig config_;
  std::vector<double> m_ = std::vector<double>(kSize), v_ = m_;
};

TEST_CASE("adamw: the weights are those of PyTorch's rule, update by update") {
  for (const char* settings :
       {"{kind: adamw}", "{kind: adamw, learning_rate: 0.1, weight_decay: 0.3}",
        "{kind: adamw, learning_rate: 0.1, beta1: 0.8, beta2: 0.95, epsilon: 0.0625, weight_decay: 0}"}) {
    CAPTURE(settings);
    const Config config = Load(settings);
    TorchAdamw torch(config.train.optimizer);
    const auto ours = MakeOptimizer(config, kSize);
    std::vector<double> expected = {1.0, -1.0, 0.5, 0.0, 2.0}, slopes(kSize);
    std::vector<float> weights(expected.begin(), expected.end()), gradient(kSize), updated(kSize);
    for (int64_t number = 1; number <= 10; ++number) {
      for (int64_t i = 0; i < kSize; ++i) {
        slopes[i] = kCurvature[i] * (expected[i] - kTarget[i]);
        gradient[i] = static_cast<float>(kCurvature[i] * (weights[i] - kTarget[i]));
      }
      torch.Step(number, slopes, &expected);
      // Into another buffer at every second update, as a ps does while the weights are lent.
      float* const to = number % 2 == 0 ? updated.data() : weights.data();
      ours->Apply({number}, 0, weights.data(), to, reinterpret_cast<const std::byte*>(gradient.data()),
                  kSize);
      if (number % 2 == 0) weights = updated;
      for (int64_t i = 0; i < kSize; ++i) {
        CHECK(std::abs(weights[i] - expected[i]) <= 2e-6 * std::max(1.0, std::abs(expected[i])));
      }
    }
  }
}

TEST_CASE("adamw: defaults are PyTorch's") {
  const OptimizerConfig optimizer = Load("{kind: adamw}").train.optimizer;
  CHECK(optimizer.learning_rate == 0.001);
  CHECK(optimizer.weight_decay == 0.01);
}

TEST_CASE("adamw: without weight decay it has adam's bits") {
  const Config with = Load("{kind: adamw, weight_decay: 0, l2: 0.1, clip_value: 0.5}");
  const Config without = Load("{kind: adam, l2: 0.1, clip_value: 0.5}");
  std::vector<float> a = {1, -1, 0.5f, 0, 2}, b = a;
  const auto adamw = MakeOptimizer(with, kSize), adam = MakeOptimizer(without, kSize);
  for (int64_t number = 1; number <= 10; ++number) {
    const std::vector<float> gradient = {0.3f, -1, 2, 0.001f, -5};
    const auto* const bytes = reinterpret_cast<const std::byte*>(gradient.data());
    adamw->Apply({number}, 0, a.data(), a.data(), bytes, kSize);
    adam->Apply({number}, 0, b.data(), b.data(), bytes, kSize);
  }
  CHECK(a == b);
}

}  // namespace
}  // namespace dtrain
