#include "trainer/task/run_log.h"

#include <doctest/doctest.h>

#include "trainer/device/choice.h"
#include "trainer/model/model.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr TaskId kWorker{Role::kWorker, 2};

DeviceChoice Gpus(int count) {
  DeviceChoice choice;
  for (int id = 0; id < count; ++id) {
    choice.gpus.push_back({id, "NVIDIA H100 80GB HBM3", 9, 0, "0000:3b:00.0", 85520809984, 132});
  }
  return choice;
}

Config Mlp() {
  Config config = DigitsCluster(2, 1, 1);
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {100};
  config.train.optimizer.kind = OptimizerKind::kAdam;
  return config;
}

std::vector<std::string> Operations(const Config& config, const DeviceChoice& choice) {
  const int ps = static_cast<int>(config.cluster.ps.size());
  return OperationLines(config, PlaceVariables(ModelVariables(config.model), ps, config.placement), choice,
                        "cpu:0");
}

TEST_CASE("device lines: a GPU with its name, capability, memory and address") {
  Config config;
  config.device.memory_fraction = 0.25;
  CHECK(DeviceLines(config, kWorker, Gpus(1)) ==
        std::vector<std::string>{"device /job:worker/task:2/gpu:0: NVIDIA H100 80GB HBM3, compute capability "
                                 "9.0, 79.6 GiB (25 % allowed), pci 0000:3b:00.0"});
  CHECK(TowerLines(config, kWorker, Gpus(1)).empty());
}

TEST_CASE("device lines: a processor by the worker's id, and of a ps always 0") {
  Config config;
  config.device.ids = {3};
  config.device.threads = 2;
  const std::string processor = ProcessorName() + ", " + InstructionSet() + ", 2 threads";
  CHECK(DeviceLines(config, kWorker, {}) ==
        std::vector<std::string>{"device /job:worker/task:2/cpu:3: " + processor});
  CHECK(DeviceLines(config, {Role::kPs, 1}, {}) ==
        std::vector<std::string>{"device /job:ps/task:1/cpu:0: " + processor});
}

TEST_CASE("device lines: several GPUs are towers") {
  Config config;
  config.device.ids = {0, 1};
  const std::vector<std::string> lines = DeviceLines(config, kWorker, Gpus(2));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].find("device /job:worker/task:2/gpu:1: NVIDIA") == 0);
  CHECK(lines[2] == "2 towers: gpu 0, gpu 1; a step is 100 rows of each");
  CHECK(
      TowerLines(config, kWorker, Gpus(2)) ==
      std::vector<std::string>{"tower 0 -> /job:worker/task:2/gpu:0", "tower 1 -> /job:worker/task:2/gpu:1"});
  CHECK(TowerLines(config, {Role::kPs, 0}, {}).empty());
}

TEST_CASE("device lines: every operation of an mlp on its device, the updates on every ps") {
  CHECK(Operations(Mlp(), Gpus(1)) ==
        std::vector<std::string>{"layer 1 matmul, bias, sigmoid -> /job:worker/task:0/gpu:0",
                                 "layer 2 matmul, bias -> /job:worker/task:0/gpu:0",
                                 "loss softmax_cross_entropy -> /job:worker/task:0/gpu:0",
                                 "gradient weights/W2, biases/b2 -> /job:worker/task:0/gpu:0",
                                 "gradient weights/W1, biases/b1 -> /job:worker/task:0/gpu:0",
                                 "update adam -> /job:ps/task:0/cpu:0",
                                 "update adam -> /job:ps/task:1/cpu:0"});
}

TEST_CASE("device lines: without hidden layers there is one layer, and several devices are towers") {
  Config config = LinearCluster(1, 1, 1);
  config.device.ids = {0, 4};
  CHECK(Operations(config, {}) == std::vector<std::string>{"layer 1 matmul, bias -> towers 0 to 1",
                                                           "loss mean_squared_error -> towers 0 to 1",
                                                           "gradient weights/W1, biases/b1 -> towers 0 to 1",
                                                           "update sgd -> /job:ps/task:0/cpu:0"});
  config.model.kind = ModelKind::kLogistic;
  CHECK(Operations(config, {})[1] == "loss sigmoid_cross_entropy -> towers 0 to 1");
}

}  // namespace
}  // namespace dtrain
