// Whole clusters with data.split: feed, of every kind of rows: worker 0 reads, and the run ends with the bits
// of split: shard.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/testing/files.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"
#include "trainer/task/quiet_run_test_util.h"

namespace dtrain {
namespace {

// A directory with rows in each format, of which class 1 is more likely where the first feature is large.
std::string Directory() {
  static const std::string directory = [] {
    const std::string made = testing::NewDirectory();
    std::ofstream vw(made + "/rows.vw"), svm(made + "/rows.svm"), csv(made + "/rows.csv"),
        criteo(made + "/rows.criteo");
    csv << "x,city,w,y\n";
    const CounterRandom random(7);
    for (uint64_t row = 0; row < 330; ++row) {
      const auto draw = [&](uint64_t what, uint64_t below) { return random.Below(row * 64 + what, below); };
      const uint64_t x = draw(0, 100), city = draw(1, 40), label = draw(2, 100) < x ? 1 : 0;
      vw << fmt::format("{} {} |n x:{} |c c{} c{}\n", label, 1 + draw(3, 3), x / 10.0, city, city / 2);
      svm << fmt::format("{} 1:{} {}:1 {}:2 {}:1\n", label, x / 100.0, 2 + city, 60 + draw(4, 40), 2 + city);
      csv << fmt::format("{},c{},{},{}\n", x, city, 1 + draw(3, 3), label);
      criteo << label;
      for (uint64_t i = 0; i < 13; ++i)
        criteo << '\t' << (i % 3 == 2 ? "" : std::to_string(draw(5 + i, x + 2)));
      for (uint64_t i = 0; i < 26; ++i) criteo << fmt::format("\tv{}", draw(20 + i, 5 + i));
      criteo << '\n';
    }
    return made;
  }();
  return directory;
}

Config Job(const std::string& model, const std::string& data, const std::string& train = "") {
  const std::string path = testing::NewDirectory() + "/job.yaml";
  std::ofstream(path) << fmt::format(
      "cluster: {{ps: [\"127.0.0.1:10001\", \"127.0.0.1:10002\"], worker: [\"127.0.0.1:11001\", "
      "\"127.0.0.1:11002\", \"127.0.0.1:11003\"]}}\n"
      "model: {{{}}}\ndata: {{{}, validation: 10{}}}\n"
      "train: {{mode: sync, epochs: 2, batch_size: 8, {}optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n"
      "eval: {{on: validation}}\nfailure: {{detect_s: 20}}\nnet: {{checksum: true}}\n",
      model, data, data.find("cache:") == std::string::npos ? "" : ", cache_dir: " + path + ".cache", train);
  return LoadConfig(path, {}, {});
}

std::string Train(const std::string& format, const std::string& file, const std::string& more = "") {
  return fmt::format("train: {{format: {}, path: {}/{}{}}}", format, Directory(), file, more);
}

void CheckAsShard(Config config) {
  const RunSummary shard = Run(config);
  config.data.split = Split::kFeed;
  const RunSummary feed = Run(config);
  REQUIRE(shard.model_crc.has_value());
  CHECK(*feed.model_crc == *shard.model_crc);
  CHECK(feed.examples == shard.examples);
  CHECK(feed.local_steps == shard.local_steps);
  CHECK(*feed.final_loss == *shard.final_loss);
}

TEST_CASE("feed: sparse rows of every format train models of tables and of layers to the bits of shard") {
  const std::string csv = Train("csv", "rows.csv", ", label: y"), vw = Train("vw", "rows.vw");
  const std::string svm = Train("libsvm", "rows.svm"), criteo = Train("criteo", "rows.criteo");
  const struct {
    std::string model, data;
  } cases[] = {
      {"kind: logistic", svm},
      {"kind: logistic, table: hash", svm},
      {"kind: logistic, table: none", svm},
      {"kind: mlp, hidden: [4], head: logistic", svm},
      {"kind: fm, factors: 3", vw + ", hash_bits: 12"},
      {"kind: softmax, outputs: 2", vw},
      {"kind: linear", csv + ", hash: [city], weight: w"},
      {"kind: logistic, table: hash", csv + ", hash: [city], class_weights: [balanced]"},
      {"kind: logistic", criteo + ", hash_bits: 10"},
      {"kind: wide_deep, hidden: [4], embedding: 2", criteo + ", hash_bits: 10, scale: standard"},
      {"kind: wide_deep, hidden: [4], embedding: 2", csv + ", hash: [city], scale: standard"},
      {"kind: wide_deep, hidden: [4], embedding: 2, table: hash", csv + ", hash: [city], scale: unit"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.model);
    CAPTURE(each.data);
    CheckAsShard(Job(each.model, each.data));
  }
}

TEST_CASE("feed: rows and classes with weights train to the bits of shard") {
  const std::string csv = Train("csv", "rows.csv", ", label: y") + ", ignore: [city]";
  CheckAsShard(Job("kind: logistic", csv + ", weight: w"));
  CheckAsShard(Job("kind: logistic", csv + ", class_weights: [balanced], scale: standard"));
  CheckAsShard(Job("kind: softmax, outputs: 2", csv + ", weight: w, class_weights: [\"1=3\"]"));
}

TEST_CASE("feed: rows that are read from files or a cache in each epoch train to the bits of shard") {
  for (const char* cache : {"none", "file"}) {
    CAPTURE(cache);
    const std::string keys = fmt::format(", cache: {}, shuffle_rows: 40", cache);
    CheckAsShard(Job("kind: logistic", Train("csv", "rows.csv", ", label: y") + ", ignore: [city]" + keys));
    CheckAsShard(Job("kind: fm, factors: 3", Train("vw", "rows.vw") + keys));
  }
}

TEST_CASE(
    "feed: without rounds, and with the keys of several batches asked for ahead, sparse rows are learnt") {
  for (const char* mode : {"async, in_flight: 3", "ssp"}) {
    CAPTURE(mode);
    Config config = Job("kind: logistic", Train("libsvm", "rows.svm"));
    config.train.mode = std::string(mode) == "ssp" ? TrainMode::kSsp : TrainMode::kAsync;
    if (config.train.mode == TrainMode::kAsync) config.train.in_flight = 3;
    config.train.epochs = 20;
    config.data.split = Split::kFeed;
    const RunSummary summary = Run(config);
    CHECK(summary.examples == 20 * 320);
    CHECK(*summary.final_loss < 0.65);
  }
}

TEST_CASE("feed: a batch of sparse rows that is larger than a message ends the run with the remedy") {
  const std::string path = testing::NewDirectory() + "/wide.svm";
  std::ofstream file(path);
  for (int row = 0; row < 80; ++row) {
    file << row % 2;
    for (int i = 1; i <= 5000; ++i) file << ' ' << i << ":0.5";
    file << '\n';
  }
  file.close();
  Config config = Job("kind: logistic", "train: {format: libsvm, path: " + path + "}");
  config.cluster.worker.resize(2);
  config.data.split = Split::kFeed;
  config.net.max_message_mb = 1;
  config.train.batch_size = 34;  // 5,000 features of 4 + 2 bytes in each row
  CHECK(Run(config).status == "done");
  config.train.batch_size = 35;
  CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("net.max_message_mb = 1. Use a smaller batch"),
                       UserError);
}

TEST_CASE(
    "feed: a fault that the feeder meets in the middle saves the run while others wait for their batches") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    const std::string directory = testing::NewDirectory(), path = directory + "/late.svm";
    std::ofstream file(path);
    for (int row = 0; row < 14350; ++row) {
      file << row % 2;
      for (int i = 1; i <= (row < 14000 ? 2 : 5000); ++i) file << ' ' << i << ":0.5";
      file << '\n';
    }
    file.close();
    Config config = Job("kind: logistic", "train: {format: libsvm, path: " + path + "}");
    config.cluster.worker.resize(2);
    config.data.split = Split::kFeed;
    config.data.shuffle = false;
    config.net.max_message_mb = 1;
    config.train.mode = mode;
    config.train.batch_size = 35;
    config.failure.worker_lost = WorkerLost::kWait;
    config.checkpoint.dir = directory + "/ckpt";
    const TimePoint begun = Clock::now();
    CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("for all workers. The run stopped at global step "),
                         UserError);
    CHECK(SecondsSince(begun) < 20);
    CHECK(CheckpointDirectory(config.checkpoint.dir).List().size() == 2);
  }
}

}  // namespace
}  // namespace dtrain
