// Whole clusters in one process: what a run promises beyond property_test.cc, over the in-process transport.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/testing/files.h"
#include "net/inproc_transport.h"
#include "trainer/input/data_test_util.h"
#include "trainer/model/layout.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

Config Clipping(Config config, double clip_norm) {
  config.train.optimizer.clip_norm = clip_norm;
  return config;
}

TEST_CASE(
    "cluster: a table is read once to know its columns and once for its rows, by all tasks of a process "
    "together") {
  constexpr size_t kBytes = 16 << 20;  // a look at the header takes 1 MiB
  std::string content = "a,tag,y\n";
  for (int row = 0; content.size() < kBytes; ++row)
    content += fmt::format("{:.40f},{},0\n", row * 1e-6, row % 3);
  Config config = LinearCluster(2, 3, 6);
  config.data.train = CsvSource("table.csv", content, "y");
  config.data.categories = {"tag"};
  config.data.missing = MissingValues::kMean;
  config.model.inputs.reset();
  const int64_t before = BytesRead();
  CHECK(Run(config).examples > 0);
  CHECK((BytesRead() - before) / kBytes == 2);
}

TEST_CASE("cluster: a batch far larger than the data takes memory for the rows there are") {
  for (const Split split : {Split::kShard, Split::kFeed}) {
    Config config = DigitsCluster(1, 2, 3);
    config.data.split = split;
    config.data.train.rows = 3999;
    config.train.batch_size = 2000;
    CHECK(Run(config).examples == 3 * 3999);
  }
  Config config = DigitsCluster(1, 1, 3);
  config.train.batch_size = 1000000000;
  const RunSummary summary = Run(config);
  CHECK(summary.global_step == 3);
  CHECK(summary.examples == 3 * 4000);
}

TEST_CASE("cluster: one worker gives the same weights whatever the number of ps and their placement") {
  std::string plain;
  for (const bool clipped : {false, true}) {
    std::string crc;
    for (const int ps : {1, 2, 3, 5}) {
      for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
        Config config = DigitsCluster(ps, 1, 1);
        if (clipped) config = Clipping(config, 0.3);
        config.data.train.rows = 2000;
        config.model.init.kind = InitKind::kNormal;
        config.placement.policy = policy;
        const RunSummary summary = Run(config);
        if (crc.empty()) crc = *summary.model_crc;
        CHECK(*summary.model_crc == crc);
      }
    }
    CHECK(crc != plain);
    plain = crc;
  }
}

TEST_CASE("cluster: batches whose rows have no feature train the bias, of a table of either kind") {
  const std::string path = testing::NewDirectory() + "/rows.svm";
  std::ofstream(path) << "1\n0\n1\n1\n1 3:1\n0\n";
  for (const TableKind table : {TableKind::kRange, TableKind::kHash}) {
    Config config = LinearCluster(2, 1, 12);
    config.model.kind = ModelKind::kLogistic;
    config.model.table = table;
    config.model.inputs = 4;
    config.data.train = DataSourceConfig();
    config.data.train.format = DataFormat::kLibsvm;
    config.data.train.path = {path};
    config.data.shuffle = false;
    config.train.batch_size = 2;
    CHECK(Run(config).examples == 24);
  }
}

TEST_CASE("cluster: a worker whose data is bad ends the run for all, with its own error") {
  for (const Split split : {Split::kShard, Split::kFeed}) {
    Config config = DigitsCluster(1, 3, 1);
    config.data.split = split;
    config.data.train.format = DataFormat::kIdx;
    config.data.train.images = {"/nowhere/images"};
    config.data.train.labels = {"/nowhere/labels"};
    CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("/nowhere/"), UserError);
  }
}

// One epoch of two workers, each with a table of its own, of so many batches.
RunSummary RunTables(TrainMode mode, const std::array<int, 2>& batches) {
  const std::string directory = testing::NewDirectory();
  Config config = LinearCluster(2, 2, 0);
  config.data.train = DataSourceConfig();
  config.data.train.format = DataFormat::kCsv;
  config.data.train.label = "y";
  config.data.split = Split::kFull;
  config.train.mode = mode;
  config.train.steps.reset();
  config.train.epochs = 1;
  config.train.batch_size = 4;
  net::InprocTransport transport;
  std::vector<std::future<RunSummary>> tasks;
  const auto start = [&](TaskId task) {
    tasks.push_back(std::async(std::launch::async, [&transport, config, task] {
      Logger log(TaskName(task), LogOptions{LogLevel::kError, true, "", false});
      return RunTask(config, task, transport, log, {});
    }));
  };
  config.data.train.path = {directory + "/not-of-a-ps.csv"};
  for (const int ps : {0, 1}) start({Role::kPs, ps});
  for (const int worker : {0, 1}) {
    config.data.train.path = {fmt::format("{}/{}.csv", directory, worker)};
    std::ofstream table(config.data.train.path.front());
    table << "x,y\n";
    for (int row = 0; row < 4 * batches[static_cast<size_t>(worker)]; ++row) {
      table << fmt::format("{},{}\n", row % 7, 2 * (row % 7) + 10);
    }
    table.close();
    start({Role::kWorker, worker});
  }
  for (size_t task = 1; task < tasks.size(); ++task) CHECK(tasks[task].get().status == "done");
  return tasks.front().get();
}

TEST_CASE("cluster: a worker with 10 batches and one with 1000 both take all of theirs, in every mode") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    CAPTURE(mode);
    const RunSummary summary = RunTables(mode, {10, 1000});
    CHECK(summary.status == "done");
    CHECK(summary.local_steps == std::vector<int64_t>{10, 1000});
    CHECK(summary.global_step == (mode == TrainMode::kSync ? 1000 : 1010));  // ten rounds are of both
  }
}

TEST_CASE(
    "cluster: more blocks than the window holds end at the last step, with the same bits where all wait") {
  const struct {
    const char* name;
    TrainMode mode;
    int workers;
    int64_t in_flight;
    int64_t steps;
    bool clips;
    std::vector<int> ps;  // with several numbers: the bits are the same
  } cases[] = {
      {"one worker", TrainMode::kAsync, 1, 1, 3, false, {1, 2}},
      {"open exchanges", TrainMode::kAsync, 3, 2, 5, false, {1}},
      {"rounds", TrainMode::kSync, 3, 1, 3, false, {1, 2}},
      {"rounds, clipped", TrainMode::kSync, 3, 1, 2, true, {1, 2}},
      {"in lockstep", TrainMode::kSsp, 3, 1, 6, false, {2}},
      {"in lockstep, the last step is one worker's", TrainMode::kSsp, 3, 1, 4, false, {1}},
      {"in lockstep, the last ones are two workers'", TrainMode::kSsp, 3, 2, 5, false, {2}},
  };
  for (const auto& each : cases) {
    CAPTURE(each.name);
    std::string crc;
    for (const int ps : each.ps) {
      Config config = LinearCluster(ps, each.workers, each.steps);
      config.model.inputs = 18 * kBlockValues;
      config.failure.detect_s = 20;  // under a sanitizer a round of 20 MiB takes seconds
      config.train.mode = each.mode;
      config.train.in_flight = each.in_flight;
      config.train.staleness = 0;
      config.train.optimizer.learning_rate = 1e-8;
      const RunSummary summary = Run(each.clips ? Clipping(config, 1) : config);
      CHECK(summary.global_step == each.steps);
      if (crc.empty()) crc = *summary.model_crc;
      CHECK(*summary.model_crc == crc);
    }
  }
}

// An mlp of 4 blocks. Three of its layers end in the last blocks, which can be sent before the first layer is
// done.
Config DeepCluster(int ps, int workers, TrainMode mode) {
  Config config = DigitsCluster(ps, workers, 1);
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {512, 512, 512};
  config.model.init.kind = InitKind::kGlorot;
  config.data.train.rows = 400;
  config.data.test.rows = 100;
  config.train.mode = mode;
  return config;
}

// A worker that bounds the norm of its own gradient sends it whole.
TEST_CASE("cluster: a gradient that is sent layer by layer has the bits of one that is sent whole") {
  const std::string whole = *Run(Clipping(DeepCluster(1, 1, TrainMode::kAsync), 1e30)).model_crc;
  std::string of_rounds;
  for (const int ps : {1, 2, 3}) {
    for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
      Config config = DeepCluster(ps, 1, TrainMode::kAsync);
      config.placement.policy = policy;
      CHECK(*Run(config).model_crc == whole);
      config = DeepCluster(ps, 2, TrainMode::kSync);
      config.placement.policy = policy;
      const std::string crc = *Run(config).model_crc;
      if (of_rounds.empty()) of_rounds = crc;
      CHECK(crc == of_rounds);
    }
  }
  CHECK(of_rounds != whole);
}

TEST_CASE("cluster: a gradient that is not finite ends the run, also when a part of it was sent") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    Config config = DeepCluster(2, 2, mode);
    config.model.activation = Activation::kRelu;
    config.train.optimizer.learning_rate = 1e18;
    CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("local step"), Failure);
  }
}

TEST_CASE("sync: with backup workers a run of N steps ends at exactly N, clipped or not") {
  for (const bool clipped : {false, true}) {
    for (const int ps : {1, 3}) {
      for (const int aggregate : {1, 2, 3}) {
        Config config = LinearCluster(ps, 4, 100);
        config.train.mode = TrainMode::kSync;
        config.train.aggregate = aggregate;
        const RunSummary summary = Run(clipped ? Clipping(config, 0.5) : config);
        CHECK(summary.global_step == 100);
        CHECK(summary.examples >= 100 * aggregate - 4);  // the last workers may be fewer
        CHECK(summary.examples <= 400);
      }
    }
  }
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
      const RunSummary shard = Run(config);
      config.data.split = Split::kFeed;
      const RunSummary feed = Run(config);
      CHECK(feed.model_crc == shard.model_crc);
      CHECK(feed.examples == shard.examples);
      CHECK(feed.local_steps == shard.local_steps);
      CHECK(feed.test.accuracy == shard.test.accuracy);
    }
  }
}

TEST_CASE("generated digits: caches none and file end with the same bits, in sync with shard and feed") {
  for (const int workers : {1, 3}) {
    Config config = DigitsCluster(2, workers, 2);
    config.train.mode = TrainMode::kSync;
    config.data.train.rows = 1030;
    config.data.shuffle_rows = 100;
    config.data.validation = 10;
    config.data.cache = DataCache::kNone;
    const RunSummary drawn = Run(config);
    CHECK(drawn.examples == 2 * 1020);
    CHECK(*drawn.test.accuracy > 0.5);
    for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
      for (const Split split : {Split::kShard, Split::kFeed}) {
        config.data.cache = cache;
        config.data.split = split;
        CHECK(Run(config).model_crc == drawn.model_crc);
      }
    }
  }
}

TEST_CASE("feed: the batches count in the bytes") {
  Config config = DigitsCluster(1, 3, 8);
  const RunSummary shard = Run(config);
  config.data.split = Split::kFeed;
  const RunSummary feed = Run(config);
  // Two of three batches of 50 rows of 784 bytes and a label, 640 in all; a few are requested for nothing.
  const double bytes = 8 * 80 * 2 / 3 * 50 * (784 + 4);
  for (const auto more : {feed.bytes_sent - shard.bytes_sent, feed.bytes_received - shard.bytes_received}) {
    CHECK(static_cast<double>(more) > bytes * 0.95);
    CHECK(static_cast<double>(more) < bytes * 1.15);
  }
}

// One worker with `devices` devices, in rounds; `rows` rows of training data.
RunSummary RunDevices(int64_t devices, int64_t batch_size, int64_t rows) {
  Config config = DigitsCluster(2, 1, 2);
  config.train.mode = TrainMode::kSync;
  config.train.batch_size = batch_size;
  config.data.train.rows = rows;
  config.model.init.kind = InitKind::kNormal;
  config.model.init.stddev = 0.1;
  config.device.ids.clear();
  for (int64_t i = 0; i < devices; ++i) config.device.ids.push_back(i);
  return Run(config);
}

TEST_CASE("towers: one worker of d devices ends as one of one device with d times the batch does") {
  for (const int64_t devices : {2, 3}) {
    // The last step of an epoch: one device has a short batch, or all but the first have none.
    for (const int64_t rows : {20 * 3 * 2 * 10, 20 * 3 * 2 * 10 + 27, 20 * 3 * 2 * 10 + 5}) {
      CAPTURE(devices);
      CAPTURE(rows);
      const RunSummary a = RunDevices(devices, 20, rows), b = RunDevices(1, devices * 20, rows);
      // Equal except for rounding: about 100 steps, each with a few errors of 2^-24 relative.
      CHECK(a.global_step == b.global_step);
      CHECK(a.examples == b.examples);
      CHECK(a.test.accuracy.value() == doctest::Approx(*b.test.accuracy).epsilon(2e-3));
      CHECK(a.test.loss.value() == doctest::Approx(*b.test.loss).epsilon(1e-5));
      CHECK(a.final_loss.value() == doctest::Approx(*b.final_loss).epsilon(1e-5));
    }
  }
}

// Weight and bias of a line, in double.
using Line = std::array<double, 2>;

// The gradient of the mean squared error of one batch.
Line LineGradient(const Line& line, const Batch& batch) {
  Line gradient = {0, 0};
  for (int64_t row = 0; row < batch.rows; ++row) {
    const double x = static_cast<double>(batch.inputs[row]);
    const double error = line[0] * x + line[1] - static_cast<double>(batch.targets[row]);
    gradient[0] += 2 * error * x / static_cast<double>(batch.rows);
    gradient[1] += 2 * error / static_cast<double>(batch.rows);
  }
  return gradient;
}

// The result of a synchronous run of `config`, or of an asynchronous one of one worker, by plain loops.
// `clipped`: counts the steps that were clipped.
Line PlainRun(const Config& config, int* clipped) {
  const LoadedData data = LoadData(config);
  const int workers = static_cast<int>(config.cluster.worker.size());
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (int i = 0; i < workers; ++i) sources.push_back(MakeBatchSource(config, data.train, i, workers));
  Line line = {0, 0};
  for (int64_t step = 0; step < *config.train.steps; ++step) {
    Line mean = {0, 0};
    for (const auto& source : sources) {
      Batch batch;
      REQUIRE(source->Next(&batch));
      const Line gradient = LineGradient(line, batch);
      for (size_t i : {0, 1}) mean[i] += gradient[i] / workers;
    }
    const double norm = std::sqrt(mean[0] * mean[0] + mean[1] * mean[1]);
    const double scale =
        norm > *config.train.optimizer.clip_norm ? *config.train.optimizer.clip_norm / norm : 1;
    *clipped += scale < 1 ? 1 : 0;
    for (size_t i : {0, 1}) line[i] -= config.train.optimizer.learning_rate * scale * mean[i];
  }
  return line;
}

void CheckAgainstPlainRun(const Config& config) {
  int clipped = 0;
  const Line expected = PlainRun(config, &clipped);
  CHECK(clipped > 0);
  CHECK(clipped < *config.train.steps);
  const RunSummary summary = Run(config);
  CHECK(summary.weights.at("weights/W1")[0] == doctest::Approx(expected[0]).epsilon(1e-5));
  CHECK(summary.weights.at("biases/b1")[0] == doctest::Approx(expected[1]).epsilon(1e-5));
}

TEST_CASE("clip norm: one worker's asynchronous run is a plain loop's") {
  for (const int ps : {1, 2}) {
    for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
      Config config = Clipping(LinearCluster(ps, 1, 50), 20);
      config.train.mode = mode;
      config.train.batch_size = 4;
      CheckAgainstPlainRun(config);
    }
  }
}

TEST_CASE("clip norm: a synchronous run clips the mean of each round, as a plain loop does") {
  for (const int ps : {1, 2, 3}) {
    for (const int workers : {1, 3}) {
      Config config = Clipping(LinearCluster(ps, workers, 50), 20);
      config.train.mode = TrainMode::kSync;
      config.train.batch_size = 4;
      CheckAgainstPlainRun(config);
    }
  }
}

// Rounds over 20 epochs of `rows` rows, in batches of 50.
Config UnevenRounds(int ps, int workers, int64_t rows) {
  Config config = LinearCluster(ps, workers, 0);
  config.train.mode = TrainMode::kSync;
  config.train.steps.reset();
  config.train.epochs = 20;
  config.train.batch_size = 50;
  config.train.optimizer.learning_rate = 0.02;
  config.data.train.rows = rows;
  return config;
}

// What one machine makes of the batches of all workers joined, by plain loops.
Line JoinedRun(Config config, int64_t* steps) {
  config.train.batch_size *= static_cast<int64_t>(config.cluster.worker.size()) * config.device.towers();
  config.device.ids = {0};
  config.cluster.worker.resize(1);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, LoadData(config).train, 0, 1);
  const std::optional<double>& clip_norm = config.train.optimizer.clip_norm;
  Line line = {0, 0};
  for (Batch batch; source->Next(&batch); ++*steps) {
    const Line gradient = LineGradient(line, batch);
    const double norm = std::sqrt(gradient[0] * gradient[0] + gradient[1] * gradient[1]);
    const double scale = clip_norm && norm > *clip_norm ? *clip_norm / norm : 1;
    for (size_t i : {0, 1}) line[i] -= config.train.optimizer.learning_rate * scale * gradient[i];
  }
  return line;
}

void CheckAgainstJoinedRun(const Config& config) {
  int64_t steps = 0;
  const Line expected = JoinedRun(config, &steps);
  const RunSummary summary = Run(config);
  CHECK(summary.global_step == steps);
  CHECK(summary.local_steps == std::vector<int64_t>(config.cluster.worker.size(), steps));
  CHECK(summary.examples == 20 * *config.data.train.rows);
  CHECK(summary.deterministic);
  CHECK(std::isfinite(summary.final_loss.value()));
  CHECK(summary.weights.at("weights/W1")[0] == doctest::Approx(expected[0]).epsilon(1e-6));
  CHECK(summary.weights.at("biases/b1")[0] == doctest::Approx(expected[1]).epsilon(1e-6));
}

TEST_CASE("sync: n workers of batch b end as one with batches of n * b, also if the rows do not divide") {
  for (const int64_t rows : {101, 199, 200, 210, 251}) {
    for (const int workers : {1, 2, 3}) {
      for (const bool shuffle : {true, false}) {
        if (rows / 50 < workers - 1) continue;  // every worker needs a batch
        CAPTURE(rows);
        CAPTURE(workers);
        Config config = UnevenRounds(1, workers, rows);
        config.data.shuffle = shuffle;
        CheckAgainstJoinedRun(config);
        CheckAgainstJoinedRun(Clipping(config, 0.5));
      }
    }
  }
  Config towers = UnevenRounds(1, 2, 410);  // 9 batches for 2 workers of 2 devices
  towers.device.ids = {0, 1};
  CheckAgainstJoinedRun(towers);
}

TEST_CASE(
    "sync: uneven rounds have the same bits for any number of ps, and when worker 0 deals the batches") {
  for (const bool clipped : {false, true}) {
    std::string crc;
    for (const int ps : {1, 3}) {
      for (const Split split : {Split::kShard, Split::kFeed}) {
        Config config = UnevenRounds(ps, 2, 101);
        config.data.split = split;
        if (clipped) config = Clipping(config, 0.5);
        const RunSummary summary = Run(config);
        if (crc.empty()) crc = *summary.model_crc;
        CHECK(*summary.model_crc == crc);
      }
    }
  }
}

TEST_CASE("sync: workers that drop short batches end each epoch in step too") {
  Config config = UnevenRounds(1, 3, 230);
  config.data.last_batch = LastBatch::kDrop;
  const RunSummary summary = Run(config);
  CHECK(summary.local_steps == std::vector<int64_t>{40, 40, 40});
  CHECK(summary.global_step == 40);
  CHECK(summary.examples == 20 * 200);
}

TEST_CASE("sync: with backup workers an epoch has each worker's own steps") {
  Config config = UnevenRounds(1, 3, 210);
  config.train.aggregate = 2;
  CHECK(Run(config).local_steps == std::vector<int64_t>{40, 40, 20});
}

}  // namespace
}  // namespace dtrain
