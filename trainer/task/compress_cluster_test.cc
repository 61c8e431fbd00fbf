// Whole clusters in one process with net.compress: what they learn, and what they promise.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/testing/files.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using net::Compression;

const std::vector<CompressConfig> kForms = {{Compression::kBf16, Compression::kBf16},
                                            {Compression::kInt8, Compression::kInt8},
                                            {Compression::kTopk, Compression::kInt8}};

std::string Name(const CompressConfig& compress) { return net::CompressionName(compress.push); }

Config With(Config config, const CompressConfig& compress) {
  config.net.compress = compress;
  return config;
}

Config Mlp(Config config, int64_t hidden) {
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {hidden};
  return config;
}

Config Rounds(int ps, int64_t steps) {
  Config config = DigitsCluster(ps, 2, 0);
  config.train.mode = TrainMode::kSync;
  config.train.epochs.reset();
  config.train.steps = steps;
  config.failure.worker_lost = WorkerLost::kWait;
  return config;
}

TEST_CASE("compress: each mode learns as well as with float32, in less than half of the bytes") {
  for (const bool mlp : {false, true}) {
    for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
      // The accuracy of an asynchronous run depends on the order of its updates: less so after small and many
      // ones.
      Config config = DigitsCluster(2, 2, 24);
      config.train.optimizer.learning_rate = 0.05;
      if (mlp) config = Mlp(config, 20);
      config.train.mode = mode;
      if (mode == TrainMode::kAsync) config.train.in_flight = 2;
      const RunSummary plain = Run(config);
      REQUIRE(*plain.test.accuracy > 0.8);
      CHECK(plain.bytes_saved == 0);
      for (const CompressConfig& compress : kForms) {
        CAPTURE(mlp);
        CAPTURE(static_cast<int>(mode));
        CAPTURE(Name(compress));
        const RunSummary summary = Run(With(config, compress));
        CHECK(*summary.test.accuracy > *plain.test.accuracy - 0.02);
        CHECK(summary.bytes_saved > summary.bytes_sent * 8 / 10);
        CHECK(static_cast<double>(summary.bytes_sent + summary.bytes_saved) ==
              doctest::Approx(static_cast<double>(plain.bytes_sent)).epsilon(0.06));
      }
    }
  }
}

// Rows of some of 400 features, the larger half of which makes class 1 likely.
std::string SparseRows() {
  const std::string path = testing::NewDirectory() + "/rows.svm";
  std::ofstream file(path);
  const CounterRandom random(5);
  for (uint64_t row = 0; row < 6000; ++row) {
    std::string features;
    int sum = 0;
    for (uint64_t i = 0; i < 10; ++i) {
      const uint64_t feature = 40 * i + random.Below(row * 20 + i, 40) + 1;
      sum += feature % 2 == 0 ? 1 : -1;
      features += " " + std::to_string(feature) + ":1";
    }
    file << (sum + static_cast<int>(random.Below(row * 20 + 15, 3)) - 1 > 0) << features << "\n";
  }
  return path;
}

TEST_CASE("compress: rows of a table are learnt as well as with float32, and the bytes of both are told") {
  const std::string path = SparseRows();
  for (const int kind : {0, 1, 2}) {
    for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
      Config config = LinearCluster(2, 2, 0);
      config.model.kind = kind == 2 ? ModelKind::kWideDeep : ModelKind::kLogistic;
      config.model.head = ModelHead::kLogistic;
      if (kind == 1) config.model.table = TableKind::kHash;
      if (kind == 2) config.model.hidden = {8}, config.model.embedding = 4;
      if (kind == 2) config.model.init.kind = InitKind::kNormal, config.model.init.stddev = 0.05;
      config.model.inputs = kind == 1 ? kKeyInputs : 401;
      config.data.whole_keys = kind == 1;
      config.data.train.format = config.data.test.format = DataFormat::kLibsvm;
      config.data.train.path = config.data.test.path = {path};
      config.train.steps.reset();
      config.train.epochs = 2;
      config.train.batch_size = 60;
      config.train.mode = mode;
      if (mode == TrainMode::kAsync) config.train.in_flight = 2;
      if (mode == TrainMode::kSync) config.train.optimizer.clip_norm = 5;
      config.train.optimizer.kind = OptimizerKind::kAdagrad;
      config.train.optimizer.learning_rate = 0.3;
      const RunSummary plain = Run(config);
      REQUIRE(plain.test.auc);
      CHECK(*plain.test.auc > 0.85);
      CHECK(plain.bytes_saved > 0);  // of keys
      for (const Compression form : {Compression::kBf16, Compression::kInt8}) {
        CAPTURE(kind);
        CAPTURE(static_cast<int>(mode));
        CAPTURE(net::CompressionName(form));
        const RunSummary summary = Run(With(config, {form, form}));
        CHECK(*summary.test.auc > *plain.test.auc - 0.01);
        CHECK(summary.bytes_sent < plain.bytes_sent);
        const auto all = static_cast<double>(plain.bytes_sent + plain.bytes_saved);
        const bool has_gaps = kind == 2 && form == Compression::kInt8;  // between small variables
        CHECK((has_gaps || static_cast<double>(summary.bytes_sent + summary.bytes_saved) ==
                               doctest::Approx(all).epsilon(0.06)));
        CHECK_FALSE(summary.deterministic);
      }
    }
  }
}

TEST_CASE("compress: synchronous runs have the same bits for any number of ps and any placement") {
  for (const CompressConfig& compress : kForms) {
    CAPTURE(Name(compress));
    std::string crc;
    for (const int ps : {1, 2, 5}) {
      for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
        Config config = With(Mlp(Rounds(ps, 12), 350), compress);  // more than one block
        config.placement.policy = policy;
        config.train.optimizer.kind = OptimizerKind::kAdam;
        config.net.checksum = ps == 2;
        const RunSummary summary = Run(config);
        CHECK_FALSE(summary.deterministic);
        if (crc.empty()) crc = *summary.model_crc;
        CHECK(*summary.model_crc == crc);
      }
    }
  }
}

TEST_CASE("compress: with weights alone compressed a run goes on from a checkpoint with the same bits") {
  for (const Compression form : {Compression::kBf16, Compression::kInt8}) {
    const CompressConfig compress{Compression::kNone, form};
    const RunSummary expected = Run(With(Rounds(1, 40), compress));
    CHECK(expected.deterministic);
    const std::string directory = testing::NewDirectory();
    for (const int64_t steps : {17, 40}) {
      Config config = With(Rounds(steps == 17 ? 2 : 3, steps), compress);
      config.checkpoint.dir = directory;
      const RunSummary summary = Run(config);
      CHECK(summary.deterministic);
      CHECK((summary.model_crc == expected.model_crc) == (steps == 40));
    }
    std::filesystem::remove_all(directory);
  }
}

TEST_CASE("compress: a run whose gradients are compressed goes on from a checkpoint") {
  const std::string directory = testing::NewDirectory();
  for (const int64_t steps : {20, 60}) {
    Config config = With(DigitsCluster(2, 2, 0), kForms.back());
    config.train.epochs.reset();
    config.train.steps = steps;
    config.checkpoint.dir = directory;
    const RunSummary summary = Run(config);
    CHECK(summary.global_step == steps);
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("compress: the evaluated weights are those of the ps, not rounded ones") {
  Config config = Rounds(1, 30);
  config.train.optimizer.learning_rate = 0;
  config.model.init.kind = InitKind::kNormal;
  const double plain = *Run(config).test.loss;
  CHECK(*Run(With(config, {Compression::kNone, Compression::kInt8})).test.loss == plain);
}

TEST_CASE("compress: a gradient that is not finite ends the run, as without") {
  for (const CompressConfig& compress : kForms) {
    CAPTURE(Name(compress));
    Config config = With(DigitsCluster(1, 1, 3), compress);
    config.train.optimizer.learning_rate = 1e38;
    try {
      Run(config);
      FAIL_CHECK("the run has not diverged");
    } catch (const Failure& failure) {
      CHECK(failure.code() == ExitCode::kDiverged);
    }
  }
}

}  // namespace
}  // namespace dtrain
