// Whole clusters in one process: what a run promises, over the in-process transport.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "trainer/model/blocks.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

RunSummary Run(const Config& config) {
  LogOptions log;
  log.level = LogLevel::kWarning;
  return RunClusterInProcess(config, log, {});
}

int64_t Sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return sum;
}

TEST_CASE("cluster: a run of N steps ends at exactly N, for any number of ps, workers and open exchanges") {
  for (const int ps : {1, 2, 3}) {
    for (const int workers : {1, 2, 5}) {
      for (const int in_flight : {1, 4}) {
        Config config = LinearCluster(ps, workers, 137);
        config.train.in_flight = in_flight;
        const RunSummary summary = Run(config);
        CAPTURE(ps);
        CAPTURE(workers);
        CAPTURE(in_flight);
        CHECK(summary.status == "done");
        CHECK(summary.global_step == 137);
        CHECK(Sum(summary.local_steps) == 137);
        CHECK(summary.examples == 137);
      }
    }
  }
}

TEST_CASE("cluster: fewer steps than workers still end everywhere") {
  const RunSummary summary = Run(LinearCluster(2, 4, 1));
  CHECK(summary.global_step == 1);
}

TEST_CASE("cluster: epochs end each worker after its own share") {
  Config config = DigitsCluster(2, 3, 2);
  config.data.train.rows = 1010;  // 21 batches of 50, the last one short: 7 for each worker
  const RunSummary summary = Run(config);
  CHECK(summary.global_step == 42);
  CHECK(summary.local_steps == std::vector<int64_t>{14, 14, 14});
  CHECK(summary.examples == 2020);
}

TEST_CASE("cluster: a batch far larger than the data takes memory for the rows there are") {
  Config config = DigitsCluster(1, 1, 3);
  config.train.batch_size = 1000000000;
  const RunSummary summary = Run(config);
  CHECK(summary.global_step == 3);
  CHECK(summary.examples == 3 * 4000);
}

TEST_CASE("cluster: linear regression finds y = 2x + 10") {
  Config config = LinearCluster(1, 2, 30000);
  config.train.optimizer.learning_rate = 0.002;
  const RunSummary summary = Run(config);
  REQUIRE(summary.weights.count("weights/W1") == 1);
  CHECK(std::fabs(summary.weights.at("weights/W1")[0] - 2) < 0.1);
  CHECK(std::fabs(summary.weights.at("biases/b1")[0] - 10) < 0.1);
}

TEST_CASE("cluster: softmax learns the digits under every split and placement, weights never torn") {
  for (const Split split : {Split::kShard, Split::kFull}) {
    for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
      Config config = DigitsCluster(2, 2, split == Split::kShard ? 8 : 4);
      config.data.split = split;
      config.placement.policy = policy;
      const RunSummary summary = Run(config);
      REQUIRE(summary.test_accuracy.has_value());
      CHECK(*summary.test_accuracy > 0.9);
      CHECK(summary.model_crc->size() == 8);
    }
  }
}

TEST_CASE("cluster: one worker gives the same weights whatever the number of ps and their placement") {
  std::string crc;
  for (const int ps : {1, 2, 3, 5}) {
    for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
      Config config = DigitsCluster(ps, 1, 1);
      config.model.init.kind = InitKind::kNormal;
      config.placement.policy = policy;
      const RunSummary summary = Run(config);
      if (crc.empty()) crc = *summary.model_crc;
      CHECK(*summary.model_crc == crc);
    }
  }
}

TEST_CASE("cluster: eval.by all gives every worker an accuracy of its own") {
  Config config = DigitsCluster(1, 3, 2);
  config.eval.by = EvalBy::kAll;
  const RunSummary summary = Run(config);
  REQUIRE(summary.worker_accuracy.size() == 3);
  for (const auto& accuracy : summary.worker_accuracy) CHECK(accuracy.value_or(0) > 0.5);
}

TEST_CASE("cluster: bytes and times of all tasks are in the summary") {
  const RunSummary summary = Run(DigitsCluster(2, 2, 1));
  // Each of the 80 steps moves a gradient and the weights, 31,400 bytes each.
  CHECK(summary.bytes_sent > 80 * 2 * 31400);
  CHECK(summary.bytes_received > 80 * 2 * 31400);
  CHECK(summary.train_s.value_or(0) > 0);
  CHECK(summary.first_step_nanos > 0);
}

TEST_CASE("cluster: a worker whose data is bad ends the run for all, with its own error") {
  Config config = DigitsCluster(1, 2, 1);
  config.data.train.format = DataFormat::kIdx;
  config.data.train.images = "/nowhere/images";
  config.data.train.labels = "/nowhere/labels";
  CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("/nowhere/"), UserError);
}

TEST_CASE("cluster: weights that overflow in the very last step end the run as diverged, by name") {
  Config config = LinearCluster(1, 2, 1);
  config.train.optimizer.learning_rate = 1e38;
  CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("is inf: the run has diverged"), Failure);
}

TEST_CASE("cluster: a model of several blocks ends with the same bits for any number of ps") {
  for (const int64_t inputs : {5 * kBlockValues / 2, 20 * kBlockValues}) {  // 20: more than the window holds
    std::string crc;
    for (const int ps : {1, 2, 3}) {
      for (const int in_flight : {1, 3}) {
        Config config = LinearCluster(ps, 1, 4);
        config.model.inputs = inputs;
        config.train.optimizer.learning_rate = 1e-8;
        config.train.in_flight = in_flight;
        const RunSummary summary = Run(config);
        CHECK(summary.global_step == 4);
        if (in_flight > 1) continue;  // gradients of other weights
        if (crc.empty()) crc = *summary.model_crc;
        CHECK(*summary.model_crc == crc);
      }
    }
  }
}

TEST_CASE("cluster: several workers push more blocks than the window holds") {
  Config config = LinearCluster(1, 3, 5);
  config.model.inputs = 20 * kBlockValues;
  config.train.optimizer.learning_rate = 1e-8;
  config.train.in_flight = 2;
  CHECK(Run(config).global_step == 5);
}

}  // namespace
}  // namespace dtrain
