// Whole clusters whose workers have several devices: a run equals one with larger batches.
#include <doctest/doctest.h>

#include <cmath>

#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// `workers` workers with `devices` devices each, in rounds; `rows` rows of training data.
Config Rounds(int workers, int64_t devices, int64_t batch_size, int64_t rows) {
  Config config = DigitsCluster(2, workers, 2);
  config.train.mode = TrainMode::kSync;
  config.train.batch_size = batch_size;
  config.data.train.rows = rows;
  config.model.init.kind = InitKind::kNormal;
  config.model.init.stddev = 0.1;
  config.device.ids.clear();
  for (int64_t i = 0; i < devices; ++i) config.device.ids.push_back(i);
  return config;
}

// Equal except for rounding: about 100 steps, each with a few errors of 2^-24 relative.
void CheckSameRun(const RunSummary& a, const RunSummary& b) {
  CHECK(a.global_step == b.global_step);
  CHECK(a.examples == b.examples);
  CHECK(a.test_accuracy.value() == doctest::Approx(*b.test_accuracy).epsilon(2e-3));
  CHECK(a.test_loss.value() == doctest::Approx(*b.test_loss).epsilon(1e-5));
  CHECK(a.final_loss.value() == doctest::Approx(*b.final_loss).epsilon(1e-5));
}

TEST_CASE("towers: one worker of d devices ends as one of one device with d times the batch does") {
  for (const int64_t devices : {2, 3}) {
    // The last step of an epoch: one device has a short batch, or all but the first have none.
    for (const int64_t rows : {20 * 3 * 2 * 10, 20 * 3 * 2 * 10 + 27, 20 * 3 * 2 * 10 + 5}) {
      CAPTURE(devices);
      CAPTURE(rows);
      CheckSameRun(Run(Rounds(1, devices, 20, rows)), Run(Rounds(1, 1, devices * 20, rows)));
    }
  }
}

TEST_CASE("towers: n workers of d devices in rounds end as n * d workers of one device do") {
  const RunSummary towers = Run(Rounds(2, 2, 25, 4000));
  CheckSameRun(towers, Run(Rounds(4, 1, 25, 4000)));
  CheckSameRun(towers, Run(Rounds(2, 1, 50, 4000)));
  CHECK(towers.global_step == 80);
  CHECK(towers.examples == 8000);
}

TEST_CASE("towers: an mlp on bytes and a model on floats learn alike") {
  Config mlp = Rounds(1, 2, 25, 2000);
  mlp.model.kind = ModelKind::kMlp;
  mlp.model.hidden = {20};
  Config alone = mlp;
  alone.device.ids = {0};
  alone.train.batch_size = 50;
  CheckSameRun(Run(mlp), Run(alone));
  Config linear = LinearCluster(1, 2, 3000);
  linear.device.ids = {0, 1};
  linear.train.batch_size = 4;
  linear.train.optimizer.learning_rate = 0.005;
  const RunSummary summary = Run(linear);
  CHECK(summary.examples == 3000 * 8);
  CHECK(std::fabs(summary.weights.at("weights/W1")[0] - 2) < 0.1);
}

TEST_CASE("towers: the same weights to the bit every time, for any number of ps") {
  Config config = Rounds(2, 3, 20, 4000);
  const RunSummary first = Run(config);
  CHECK(first.deterministic == true);
  for (int i = 0; i < 3; ++i) CHECK(Run(config).model_crc == first.model_crc);
  config.cluster.ps.pop_back();
  CHECK(Run(config).model_crc == first.model_crc);
}

TEST_CASE("towers: one device is no tower, whatever its number") {
  Config config = Rounds(2, 1, 20, 2000);
  const RunSummary zero = Run(config);
  config.device.ids = {5};
  CHECK(Run(config).model_crc == zero.model_crc);
}

}  // namespace
}  // namespace dtrain
