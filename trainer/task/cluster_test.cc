// Whole clusters in one process: the promises of a run, over the in-process transport.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "trainer/model/layout.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

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
  config.data.train.rows = 1010;  // 21 batches of 50, the last one short: 7 per worker
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
  for (const int64_t inputs : {5 * kBlockValues / 2, 20 * kBlockValues}) {  // 20: more than the window
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

// Runs sync on digits, all workers on shards; returns the checksum of the weights.
std::string SyncChecksum(Config config, int64_t expected_steps) {
  config.train.mode = TrainMode::kSync;
  config.model.init.kind = InitKind::kNormal;
  const RunSummary summary = Run(config);
  CHECK(summary.global_step == expected_steps);
  CHECK(Sum(summary.local_steps) == expected_steps * static_cast<int64_t>(config.cluster.worker.size()));
  return summary.model_crc.value_or("none");
}

TEST_CASE("sync: the same bits for any number of ps and any placement") {
  for (const int workers : {2, 3}) {
    std::string crc;
    for (const int ps : {1, 2, 3, 5}) {
      for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
        Config config = DigitsCluster(ps, workers, 1);
        config.data.train.rows = 600 * workers;
        config.placement.policy = policy;
        const std::string here = SyncChecksum(config, 12);
        if (crc.empty()) crc = here;
        CHECK(here == crc);
      }
    }
  }
}

TEST_CASE("sync: a model of more blocks than the window holds ends with the same bits for any number of ps") {
  std::string crc;
  for (const int ps : {1, 2, 3}) {
    Config config = LinearCluster(ps, 3, 4);
    config.model.inputs = 20 * kBlockValues;
    config.failure.detect_s = 20;  // under a sanitizer a round of 20 MiB takes seconds
    config.train.optimizer.learning_rate = 1e-8;
    const std::string here = SyncChecksum(config, 4);
    if (crc.empty()) crc = here;
    CHECK(here == crc);
  }
}

TEST_CASE("sync: uneven shards end everywhere; the rounds go on with who has data left") {
  Config config = DigitsCluster(2, 3, 1);
  config.train.mode = TrainMode::kSync;
  config.data.train.rows = 400;  // 8 batches of 50: 3, 3 and 2
  const RunSummary summary = Run(config);
  CHECK(summary.local_steps == std::vector<int64_t>{3, 3, 2});
  CHECK(summary.global_step == 3);
  CHECK(summary.examples == 400);
}

TEST_CASE("sync: with backup workers a run of N steps ends at exactly N") {
  for (const int ps : {1, 3}) {
    for (const int aggregate : {1, 2, 3}) {
      Config config = LinearCluster(ps, 4, 100);
      config.train.mode = TrainMode::kSync;
      config.train.aggregate = aggregate;
      const RunSummary summary = Run(config);
      CHECK(summary.global_step == 100);
      CHECK(summary.examples >= 100 * aggregate - 4);  // the last workers may be fewer
      CHECK(summary.examples <= 400);
    }
  }
}

TEST_CASE("ssp: in lockstep every worker takes as many steps as the others") {
  for (const int ps : {1, 3}) {
    Config config = LinearCluster(ps, 3, 99);
    config.train.mode = TrainMode::kSsp;
    config.train.staleness = 0;
    const RunSummary summary = Run(config);
    CHECK(summary.global_step == 99);
    CHECK(summary.local_steps == std::vector<int64_t>{33, 33, 33});
  }
}

TEST_CASE("ssp: nobody ends further ahead than the bound allows") {
  for (const int staleness : {1, 3}) {
    Config config = LinearCluster(2, 4, 400);
    config.train.mode = TrainMode::kSsp;
    config.train.staleness = staleness;
    const RunSummary summary = Run(config);
    CHECK(summary.global_step == 400);
    const auto [least, most] = std::minmax_element(summary.local_steps.begin(), summary.local_steps.end());
    CHECK(*most - *least <= staleness + 1);
  }
}

TEST_CASE("ssp: uneven shards end everywhere") {
  Config config = DigitsCluster(3, 3, 1);
  config.train.mode = TrainMode::kSsp;
  config.train.staleness = 0;
  config.data.train.rows = 400;
  CHECK(Run(config).local_steps == std::vector<int64_t>{3, 3, 2});
}

TEST_CASE("ssp: more blocks than the window holds, in lockstep") {
  Config config = LinearCluster(2, 3, 6);
  config.model.inputs = 40 * kBlockValues;
  config.train.optimizer.learning_rate = 1e-8;
  config.train.mode = TrainMode::kSsp;
  config.train.staleness = 0;
  CHECK(Run(config).global_step == 6);
}

}  // namespace
}  // namespace dtrain
