// Whole clusters in one process whose workers compute on a device that this processor emulates: with
// parameters that stay there, and with parameters that travel.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gpu/cuda/fake/fake_runtime.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using gpu::cuda::FakeCounts;
using gpu::cuda::FakeRuntime;

// Small digits: the fibers that emulate threads are slow.
Config SmallDigits(int ps, int workers, int64_t steps) {
  Config config = DigitsCluster(ps, workers, 100);
  config.data.train.rows = 400;
  config.data.test.rows = 100;
  config.train.steps = steps;
  config.train.batch_size = 20;
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.learning_rate = 0.05;
  config.net.checksum = false;
  config.model.init.kind = InitKind::kGlorot;
  return config;
}

struct Outcome {
  RunSummary summary;
  FakeCounts counts;
};

// Runs on the device, unless `kind` says otherwise.
Outcome RunOn(DeviceKind kind, Config config, FakeRuntime* runtime = nullptr) {
  config.device.kind = kind;
  FakeRuntime two;
  if (runtime == nullptr) runtime = &two;
  TaskOptions options;
  options.runtime = runtime;
  Outcome outcome;
  outcome.summary = Run(config, options);
  outcome.counts = runtime->counts();
  return outcome;
}

std::vector<float> StoredWeights(const std::string& checkpoint) {
  CheckpointReader reader(checkpoint);
  std::vector<float> weights;
  for (const auto& tensor : reader.manifest().tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.rows * tensor.cols));
    reader.Read(tensor.name, CheckpointReader::kWeights, 0, tensor.rows * tensor.cols, values.data());
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

// The final weights of a run, from its last checkpoint.
std::vector<float> WeightsOf(DeviceKind kind, Config config, FakeRuntime* runtime = nullptr) {
  const std::string directory = testing::NewDirectory();
  config.checkpoint.dir = directory + "/ckpt";
  config.checkpoint.every_secs = 0;
  const Outcome outcome = RunOn(kind, config, runtime);
  CHECK(outcome.summary.status == "done");
  CHECK(outcome.summary.global_step == *config.train.steps);
  return StoredWeights(*outcome.summary.checkpoint);
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  std::vector<float> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return Norm(difference) / Norm(b);
}

void UseMlp(Config* config) {
  config->model.kind = ModelKind::kMlp;
  config->model.hidden = {12};
}

TEST_CASE("device cluster: synchronous runs end with the processor's weights, wherever parameters lie") {
  for (const bool mlp : {false, true}) {
    for (const bool travels : {false, true}) {
      CAPTURE(mlp);
      CAPTURE(travels);
      Config config = SmallDigits(2, 2, 30);
      if (mlp) UseMlp(&config);
      config.net.checksum = travels;
      CHECK(RelativeDistance(WeightsOf(DeviceKind::kCuda, config), WeightsOf(DeviceKind::kCpu, config)) <
            1e-5);
    }
  }
}

TEST_CASE("device cluster: every optimizer updates on the device as on the processor") {
  for (const OptimizerKind kind : {OptimizerKind::kMomentum, OptimizerKind::kAdagrad, OptimizerKind::kRmsprop,
                                   OptimizerKind::kAdam, OptimizerKind::kAdamw, OptimizerKind::kFtrl}) {
    CAPTURE(static_cast<int>(kind));
    Config config = SmallDigits(1, 1, 8);
    config.train.optimizer.kind = kind;
    config.train.optimizer.learning_rate = 0.01;
    CHECK(RelativeDistance(WeightsOf(DeviceKind::kCuda, config), WeightsOf(DeviceKind::kCpu, config)) < 1e-3);
  }
}

TEST_CASE("device cluster: sums of rows, and biases without decay, are as on the processor") {
  for (const int workers : {1, 2}) {
    Config config = SmallDigits(1, workers, 8);
    UseMlp(&config);
    config.train.mode = TrainMode::kSync;
    config.train.reduce = Reduce::kSum;
    config.train.optimizer.learning_rate = 1e-3;
    config.train.optimizer.l2 = 0.1;
    config.train.optimizer.decay_biases = false;
    CHECK(RelativeDistance(WeightsOf(DeviceKind::kCuda, config), WeightsOf(DeviceKind::kCpu, config)) < 1e-4);
  }
}

TEST_CASE("device cluster: where parameters stay on the device no step copies any of them") {
  Config config = SmallDigits(1, 1, 10);
  config.eval.at_end = false;
  const FakeCounts few = RunOn(DeviceKind::kCuda, config).counts;
  config.train.steps = 60;
  const FakeCounts many = RunOn(DeviceKind::kCuda, config).counts;
  CHECK(many.bytes_from_device == few.bytes_from_device);
  CHECK(many.bytes_between_devices == few.bytes_between_devices);
  CHECK(many.allocations == few.allocations);
  // Only images and labels, 20 of each per step; labels have a region of 256 bytes.
  CHECK(many.bytes_to_device - few.bytes_to_device == 50 * (256 + 20 * 784));
}

TEST_CASE("device cluster: with data.cache: device the images stay there too") {
  Config config = SmallDigits(1, 1, 10);
  config.eval.at_end = false;
  config.data.cache = DataCache::kDevice;
  const FakeCounts few = RunOn(DeviceKind::kCuda, config).counts;
  config.train.steps = 60;
  const FakeCounts many = RunOn(DeviceKind::kCuda, config).counts;
  CHECK(many.bytes_to_device - few.bytes_to_device == 50 * (256 + 20 * 8));
}

TEST_CASE("device cluster: all modes, several ps and workers, and open exchanges end at their steps") {
  const struct {
    TrainMode mode;
    int64_t in_flight;
    std::optional<int64_t> aggregate;
  } cases[] = {{TrainMode::kAsync, 1, {}},
               {TrainMode::kAsync, 3, {}},
               {TrainMode::kSsp, 1, {}},
               {TrainMode::kSync, 1, {}},
               {TrainMode::kSync, 1, 2}};
  for (const auto& each : cases) {
    CAPTURE(static_cast<int>(each.mode));
    Config config = SmallDigits(2, 3, 40);
    config.train.mode = each.mode;
    config.train.in_flight = each.in_flight;
    config.train.aggregate = each.aggregate;
    const Outcome outcome = RunOn(DeviceKind::kCuda, config);
    CHECK(outcome.summary.global_step == 40);
    if (!each.aggregate)
      CHECK(Sum(outcome.summary.local_steps) == (each.mode == TrainMode::kSync ? 120 : 40));
    CHECK(*outcome.summary.test.accuracy > 0.2);
  }
}

TEST_CASE("device cluster: a run that was saved on the device goes on there and on the processor") {
  for (const DeviceKind second : {DeviceKind::kCuda, DeviceKind::kCpu}) {
    const std::string directory = testing::NewDirectory();
    Config config = SmallDigits(2, 1, 20);
    config.train.optimizer.kind = OptimizerKind::kMomentum;
    const std::vector<float> whole = WeightsOf(DeviceKind::kCpu, config);
    config.checkpoint.dir = directory + "/ckpt";
    config.checkpoint.every_secs = 0;
    config.train.steps = 10;
    RunOn(DeviceKind::kCuda, config);
    config.train.steps = 20;
    config.cluster.ps.resize(1);
    const Outcome outcome = RunOn(second, config);
    CHECK(outcome.summary.global_step == 20);
    CHECK(RelativeDistance(StoredWeights(*outcome.summary.checkpoint), whole) < 1e-4);
  }
}

TEST_CASE(
    "device cluster: the best checkpoint has the weights that were evaluated, wherever parameters lie") {
  for (const bool travels : {false, true}) {
    CAPTURE(travels);
    Config config = SmallDigits(1, 2, 24);
    config.train.mode = TrainMode::kAsync;
    config.net.checksum = travels;
    config.checkpoint.dir = testing::NewDirectory();
    config.checkpoint.every_secs = 0;
    config.eval.every_steps = 4;
    config.eval.keep_best = true;
    RunOn(DeviceKind::kCuda, config);
    const CheckpointDirectory directory(config.checkpoint.dir);
    const std::optional<std::string> best = directory.ReadBest();
    REQUIRE(best);
    const Manifest manifest = ReadManifest(directory.PathOf(*best));
    // A run without a step left evaluates what it began with.
    config.checkpoint.resume = directory.PathOf(*best);
    config.checkpoint.dir = testing::NewDirectory();
    config.train.steps = manifest.step;
    config.eval.every_steps = 0;
    config.eval.keep_best = false;
    CHECK(RunOn(DeviceKind::kCuda, config).summary.test.loss == manifest.loss);
  }
}

TEST_CASE("device cluster: a run that diverges ends with exit code 3 and says where") {
  Config config = LinearCluster(1, 1, 200);
  config.net.checksum = false;
  config.train.optimizer.learning_rate = 1e6;
  try {
    RunOn(DeviceKind::kCuda, config);
    FAIL("the run ended well");
  } catch (const Failure& failure) {
    CHECK(failure.code() == ExitCode::kDiverged);
    CHECK(std::string(failure.what()).find("worker 0, local step") != std::string::npos);
  }
}

TEST_CASE("device cluster: two and three GPUs in one worker are as many towers") {
  gpu::cuda::FakeOptions three;
  three.names = {"A", "B", "C"};
  Config config = SmallDigits(1, 1, 12);
  config.train.batch_size = 18;
  const std::vector<float> alone = WeightsOf(DeviceKind::kCpu, config);
  for (const int64_t count : {2, 3}) {
    config.device.ids.clear();
    for (int64_t id = 0; id < count; ++id) config.device.ids.push_back(id);
    config.train.batch_size = 18 / count;
    FakeRuntime runtime(three);
    CHECK(RelativeDistance(WeightsOf(DeviceKind::kCuda, config, &runtime), alone) < 1e-5);
  }
}

TEST_CASE("device cluster: the norm of a round's gradients cuts them on the device as on the processor") {
  Config config = SmallDigits(2, 2, 12);
  config.train.optimizer.clip_norm = 0.05;
  CHECK(RelativeDistance(WeightsOf(DeviceKind::kCuda, config), WeightsOf(DeviceKind::kCpu, config)) < 1e-5);
}

// y = 2 x + 10 in a CSV file, with rows to hold out and a test set.
Config Line(const std::string& directory) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", 0.05 * i, 10 + 0.1 * i);
  std::ofstream(directory + "/line.csv") << rows;
  Config config = LinearCluster(1, 1, 40);
  config.data.train.format = DataFormat::kCsv;
  config.data.train.path = {directory + "/line.csv"};
  config.data.train.label = "y";
  config.data.test = config.data.train;
  config.data.validation = 10;
  config.train.batch_size = 10;
  config.train.optimizer.learning_rate = 0.02;
  config.net.checksum = false;
  return config;
}

TEST_CASE(
    "device cluster: floats of a file travel, or stay on the device, with rows held out and a test set") {
  const std::string directory = testing::NewDirectory();
  for (const DataCache cache : {DataCache::kMemory, DataCache::kDevice}) {
    Config config = Line(directory);
    config.data.cache = cache;
    config.eval.every_steps = 7;
    const RunSummary here = RunOn(DeviceKind::kCpu, config).summary;
    const RunSummary there = RunOn(DeviceKind::kCuda, config).summary;
    CHECK(there.weights.at("weights/W1")[0] ==
          doctest::Approx(here.weights.at("weights/W1")[0]).epsilon(1e-5));
    CHECK(there.weights.at("biases/b1")[0] == doctest::Approx(here.weights.at("biases/b1")[0]).epsilon(1e-5));
    CHECK(*there.test.loss == doctest::Approx(*here.test.loss).epsilon(1e-3));
  }
}

TEST_CASE("device cluster: a fault of the device ends every task with exit code 1 and names it") {
  for (const gpu::cuda::FakeCall call :
       {gpu::cuda::FakeCall::kLaunchGraph, gpu::cuda::FakeCall::kWait, gpu::cuda::FakeCall::kNewStream}) {
    CAPTURE(static_cast<int>(call));
    Config config = SmallDigits(1, 1, 100);
    config.device.kind = DeviceKind::kCuda;
    FakeRuntime runtime;
    runtime.FailNext(call, call == gpu::cuda::FakeCall::kLaunchGraph ? 20 : 2);
    TaskOptions options;
    options.runtime = &runtime;
    try {
      Run(config, options);
      FAIL("the run ended well");
    } catch (const Failure& failure) {
      CHECK(failure.code() == ExitCode::kInternal);
      CHECK(std::string(failure.what()).find("cuda 0") != std::string::npos);
    }
  }
}

TEST_CASE(
    "device cluster: too little memory on the device is a user error that names the key, before anybody "
    "waits") {
  for (const char* fraction : {"1e-06", "0.0001"}) {  // of 1 GiB: 0.0001 is three times the weights, not all
    Config config = SmallDigits(1, 2, 20);
    config.train.optimizer.kind = OptimizerKind::kAdam;
    config.failure.startup_timeout_s = 1000;
    config.device.memory_fraction = std::stod(fraction);
    try {
      RunOn(DeviceKind::kCuda, config);
      FAIL("the run ended well");
    } catch (const Failure& failure) {
      CHECK(failure.code() == ExitCode::kUser);
      CHECK(std::string(failure.what()).find(std::string("device.memory_fraction = ") + fraction) !=
            std::string::npos);
    }
  }
}

TEST_CASE("device cluster: what lies between variables is zero where net.compress makes groups") {
  for (const int ps : {1, 2}) {
    Config config = SmallDigits(ps, 2, 6);
    config.train.optimizer.kind = OptimizerKind::kAdam;
    config.net.compress = {net::Compression::kInt8, net::Compression::kInt8};
    CHECK(RunOn(DeviceKind::kCuda, config).summary.status == "done");
  }
}

}  // namespace
}  // namespace dtrain
