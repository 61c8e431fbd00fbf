// The optimizers against what PyTorch and TensorFlow made of the same settings: from the keys of the config
// file to the weights. testdata/README.md says how the numbers were recorded.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/load_test_util.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

// The function that record.py minimises: the sum of kCurvature / 2 * (weight - kTarget)^2.
constexpr float kCurvature[] = {1.0f, 0.5f, 2.0f, 0.1f, 3.0f};
constexpr float kTarget[] = {0.25f, 1.0f, -1.0f, 2.0f, 0.5f};
constexpr int64_t kSize = 5;

struct Case {
  std::string settings;  // of train.optimizer, as YAML
  std::vector<std::vector<double>> weights;
};

std::vector<Case> ReadCases(const std::string& path) {
  std::ifstream file(path);
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '{') {
      cases.push_back({line, {}});
      continue;
    }
    std::istringstream numbers(line);
    std::vector<double>& weights = cases.back().weights.emplace_back(kSize);
    for (double& weight : weights) numbers >> weight;
  }
  return cases;
}

Config LoadSettings(const std::string& settings) {
  const std::string path = WriteTestFile("optimizer.yaml",
                                         "cluster: {ps: [\"localhost:1\"], worker: [\"localhost:2\"]}\n"
                                         "model: {kind: linear, inputs: 4}\n"
                                         "data: {train: {format: synthetic, name: linear}}\n"
                                         "train:\n  steps: 10\n  optimizer: " +
                                             settings + "\n");
  return LoadConfig(path, {}, {});
}

void CheckCase(const Case& recorded) {
  CAPTURE(recorded.settings);
  REQUIRE(recorded.weights.size() == 11);
  const Config config = LoadSettings(recorded.settings);
  const auto optimizer = MakeOptimizer(config, kSize);
  std::vector<float> weights(recorded.weights[0].begin(), recorded.weights[0].end());
  for (int64_t number = 1; number <= 10; ++number) {
    CAPTURE(number);
    float gradient[kSize];
    for (int64_t i = 0; i < kSize; ++i) gradient[i] = kCurvature[i] * (weights[i] - kTarget[i]);
    if (const auto& most = config.train.optimizer.clip_norm) ClipToNorm(*most, {gradient, kSize});
    optimizer->Apply({number}, 0, weights.data(), weights.data(),
                     reinterpret_cast<const std::byte*>(gradient), kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      const double expected = recorded.weights[number][i];
      // Ten updates round weights near 1 by 2^-24 each, of which the slopes see all.
      CHECK(std::abs(weights[i] - expected) <= 1e-6 * std::max(1.0, std::abs(expected)));
    }
  }
}

TEST_CASE("recorded: every optimizer and schedule follows PyTorch") {
  const std::vector<Case> cases = ReadCases("trainer/optim/testdata/torch.txt");
  CHECK(cases.size() == 16);
  for (const Case& recorded : cases) CheckCase(recorded);
}

TEST_CASE("recorded: ftrl, momentum and clip_norm follow TensorFlow") {
  const std::vector<Case> cases = ReadCases("trainer/optim/testdata/tensorflow.txt");
  CHECK(cases.size() == 7);
  for (const Case& recorded : cases) CheckCase(recorded);
}

}  // namespace
}  // namespace dtrain
