// Whole clusters whose model is a hash table: the bits of sync whatever the number of ps, also while rows
// come and leave, and what a run tells of its table. Saves and restores: shared_checkpoint_test.cc.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "base/testing/files.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// Rows of keys of up to 64 bits: some come often, most of them once.
std::string Rows() {
  static const std::string path = [] {
    const std::string name = testing::NewDirectory() + "/rows.svm";
    std::ofstream file(name);
    uint64_t key = 1;
    for (int row = 0; row < 3000; ++row) {
      file << row % 2 << " " << row % 2 + 1 << ":1 " << row % 97 + 10 << ":0.5";
      for (int i = 0; i < 6; ++i)
        file << " " << (key = key * 6364136223846793005 + 1442695040888963407) << ":1";
      file << "\n";
    }
    return name;
  }();
  return path;
}

Config HashJob(int ps, int workers, int64_t steps) {
  Config config = LinearCluster(ps, workers, steps);
  config.model.kind = ModelKind::kLogistic;
  config.model.table = TableKind::kHash;
  config.model.inputs = kKeyInputs;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {Rows()};
  config.data.whole_keys = true;
  config.train.mode = TrainMode::kSync;
  config.train.batch_size = 20;
  config.train.optimizer.kind = OptimizerKind::kAdagrad;
  config.train.optimizer.learning_rate = 0.1;
  config.failure.detect_s = 20;
  return config;
}

TEST_CASE("hash cluster: sync has one checksum for any number of ps, with admission, eviction and a limit") {
  for (const bool limited : {false, true}) {
    std::string crc;
    int64_t rows = 0;
    for (const int ps : {1, 2, 3, 5}) {
      CAPTURE(ps);
      Config config = HashJob(ps, 2, 120);
      if (limited) {
        config.model.admit_after = 2;
        config.model.evict_after = 40;
        config.model.max_rows = 4096;  // one of each hash range
      }
      const RunSummary summary = Run(config);
      CHECK(summary.deterministic);
      REQUIRE(summary.table);
      if (crc.empty()) {
        crc = *summary.model_crc;
        rows = summary.table->rows;
      }
      CHECK(*summary.model_crc == crc);
      CHECK(summary.table->rows == rows);
      CHECK((summary.table->evicted > 1000) == limited);
      CHECK((summary.table->candidates > 0) == limited);
      CHECK(summary.table->bytes > 0);
    }
    CHECK((limited ? rows > 50 && rows < 4096 : rows > 15000));
  }
}

TEST_CASE("hash cluster: a row of a range table and one of a hash table learn the same") {
  Config range = HashJob(2, 2, 60);
  range.data.train.path = {testing::NewDirectory() + "/rows.svm"};
  std::ofstream file(range.data.train.path[0]);
  for (int row = 0; row < 600; ++row)
    file << row % 2 << " " << row % 2 + 1 << ":1 " << row % 97 + 3 << ":0.5\n";
  file.close();
  range.data.test = range.data.train;
  Config hash = range;
  range.model.table = TableKind::kRange;
  range.model.inputs = 100;
  range.data.whole_keys = false;
  const RunSummary one = Run(range), other = Run(hash);
  CHECK(*one.test.loss == *other.test.loss);
  CHECK(*one.final_loss == *other.final_loss);
}

TEST_CASE("hash cluster: async and ssp learn, and all models of tables do") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    for (const ModelKind kind : {ModelKind::kLogistic, ModelKind::kFm, ModelKind::kSoftmax}) {
      Config config = HashJob(2, 3, 300);
      config.train.mode = mode;
      config.model.kind = kind;
      config.model.admit_after = 2;
      config.model.evict_after = 100;
      if (kind == ModelKind::kSoftmax) config.model.outputs = 2;
      if (kind == ModelKind::kFm) {
        config.model.head = ModelHead::kLogistic;
        config.model.init.kind = InitKind::kNormal;
        config.model.init.stddev = 0.01;
      }
      config.train.optimizer.learning_rate = 0.5;
      const RunSummary summary = Run(config);
      CHECK_FALSE(summary.deterministic);
      CHECK(*summary.final_loss < 0.4);
    }
  }
}

TEST_CASE("hash cluster: the norm of a round is that of its rows, and a lost worker is waited for") {
  Config config = HashJob(3, 2, 40);
  config.train.optimizer.clip_norm = 0.1;
  config.failure.worker_lost = WorkerLost::kWait;
  config.model.evict_after = 16;
  const std::string crc = *Run(config).model_crc;
  config.cluster.ps.resize(1);
  CHECK(*Run(config).model_crc == crc);
}

}  // namespace
}  // namespace dtrain
