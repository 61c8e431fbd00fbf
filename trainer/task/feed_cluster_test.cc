// data.split: feed in whole clusters: worker 0 deals out what each worker would have read.
#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

RunSummary RunSplit(Config config, Split split) {
  config.data.split = split;
  return Run(config);
}

TEST_CASE("feed: sync ends with the bits of split: shard, for any number of ps") {
  for (const int ps : {1, 3}) {
    for (const LastBatch last : {LastBatch::kKeep, LastBatch::kDrop}) {
      Config config = DigitsCluster(ps, 3, 2);
      config.train.mode = TrainMode::kSync;
      config.data.train.rows = 1030;  // 21 batches, the last one of 30
      config.data.last_batch = last;
      config.data.validation = 10;
      config.model.init.kind = InitKind::kNormal;
      const RunSummary shard = RunSplit(config, Split::kShard);
      const RunSummary feed = RunSplit(config, Split::kFeed);
      CHECK(feed.model_crc == shard.model_crc);
      CHECK(feed.examples == shard.examples);
      CHECK(feed.local_steps == shard.local_steps);
      CHECK(feed.test_accuracy == shard.test_accuracy);
    }
  }
}

TEST_CASE("feed: float rows without end, and with an end and no shuffle, give the bits of split: shard") {
  Config config = LinearCluster(2, 3, 40);
  config.train.mode = TrainMode::kSync;
  config.model.inputs = 5;
  config.train.batch_size = 7;
  CHECK(RunSplit(config, Split::kFeed).model_crc == RunSplit(config, Split::kShard).model_crc);
  config.data.train.rows = 100;
  config.data.shuffle = false;
  CHECK(RunSplit(config, Split::kFeed).model_crc == RunSplit(config, Split::kShard).model_crc);
}

TEST_CASE("feed: async and ssp end at exactly the number of steps, with any number of open exchanges") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    for (const int in_flight : {1, 4}) {
      if (mode == TrainMode::kSsp && in_flight > 1) continue;
      Config config = LinearCluster(2, 4, 333);
      config.train.mode = mode;
      config.train.in_flight = in_flight;
      const RunSummary summary = RunSplit(config, Split::kFeed);
      CHECK(summary.status == "done");
      CHECK(summary.global_step == 333);
      CHECK(Sum(summary.local_steps) == 333);
    }
  }
}

TEST_CASE("feed: epochs end each worker after its own share, whatever the mode") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync, TrainMode::kSsp}) {
    Config config = DigitsCluster(2, 3, 2);
    config.train.mode = mode;
    config.data.train.rows = 400;  // 8 batches of 50: 3, 3 and 2
    const RunSummary summary = RunSplit(config, Split::kFeed);
    CHECK(summary.local_steps == std::vector<int64_t>{6, 6, 4});
    CHECK(summary.examples == 800);
  }
}

TEST_CASE("feed: learns the digits, and the batches count in the bytes") {
  Config config = DigitsCluster(1, 3, 8);
  const RunSummary shard = RunSplit(config, Split::kShard);
  const RunSummary feed = RunSplit(config, Split::kFeed);
  CHECK(feed.test_accuracy.value_or(0) > 0.9);
  // Two of three batches of 50 rows of 784 bytes and a label, 640 in all; a few are requested for nothing.
  const double batches = 8 * 80 * 2 / 3;
  const double bytes = batches * 50 * (784 + 4);
  const auto more_sent = static_cast<double>(feed.bytes_sent - shard.bytes_sent);
  const auto more_received = static_cast<double>(feed.bytes_received - shard.bytes_received);
  CHECK(more_sent > bytes * 0.95);
  CHECK(more_sent < bytes * 1.15);
  CHECK(more_received > bytes * 0.95);
  CHECK(more_received < bytes * 1.15);
}

TEST_CASE("feed: one worker alone reads for itself") {
  const Config config = DigitsCluster(1, 1, 1);
  CHECK(RunSplit(config, Split::kFeed).model_crc == RunSplit(config, Split::kShard).model_crc);
}

TEST_CASE("feed: a batch far larger than the data takes memory for the rows there are") {
  Config config = DigitsCluster(1, 2, 1);
  config.train.batch_size = 2000;
  config.data.train.rows = 3999;
  CHECK(RunSplit(config, Split::kFeed).examples == 3999);
}

TEST_CASE("feed: worker 0 without data ends the run for all, with its own error") {
  Config config = DigitsCluster(1, 3, 1);
  config.data.train.format = DataFormat::kIdx;
  config.data.train.images = "/nowhere/images";
  config.data.train.labels = "/nowhere/labels";
  CHECK_THROWS_WITH_AS(RunSplit(config, Split::kFeed), doctest::Contains("/nowhere/"), UserError);
}

TEST_CASE("feed: a batch that is larger than a message may be is an error of the user's") {
  Config config = LinearCluster(1, 2, 10);
  config.model.inputs = 1000;
  config.train.batch_size = 1000;
  config.net.max_message_mb = 2;
  CHECK_THROWS_WITH_AS(RunSplit(config, Split::kFeed), doctest::Contains("net.max_message_mb = 2"),
                       UserError);
}

}  // namespace
}  // namespace dtrain
