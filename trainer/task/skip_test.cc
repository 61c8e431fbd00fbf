// hooks.stop_on_nan: skip in whole clusters: a gradient that is not finite changes nothing of a run but its
// counts, whatever the mode, the tables, the compression and the number of ps.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr int kRows = 60;

// A file of sparse rows. With `bad` so many others come after the 20th, whose gradient overflows.
std::string Rows(int bad) {
  const std::string name = testing::NewDirectory() + "/rows.svm";
  std::ofstream file(name);
  for (int row = 0; row < kRows; ++row) {
    file << 0.5 * (row % 3) << " 1:1 " << row % 5 + 2 << ":0.5 " << row % 7 + 10 << ":0.25\n";
    for (int i = 0; row == 19 && i < bad; ++i) file << "1000 1:1 4:1e38\n";
  }
  return name;
}

Config Job(TrainMode mode, TableKind table, int bad, int ps = 2, int workers = 1) {
  Config config = LinearCluster(ps, workers, 0);
  config.train.steps.reset();
  config.train.epochs = 2;
  config.train.mode = mode;
  config.train.optimizer.kind = OptimizerKind::kMomentum;
  config.train.optimizer.learning_rate = 0.02;
  config.train.optimizer.l2 = 0.01;
  config.model.table = table;
  config.model.inputs = table == TableKind::kHash ? kKeyInputs : 20;
  config.data.whole_keys = table == TableKind::kHash;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {Rows(bad)};
  config.data.shuffle = false;
  config.hooks.stop_on_nan = NonFinite::kSkip;
  config.hooks.progressive = true;
  config.failure.detect_s = 20;
  return config;
}

// One worker with batches of one row: a run is as one without the rows whose gradients are left out.
void CheckAsWithout(const Config& with_bad, const Config& without) {
  const RunSummary run = Run(with_bad), other = Run(without);
  CHECK(run.status == "done");
  CHECK(*run.model_crc == *other.model_crc);
  CHECK(*run.final_loss == *other.final_loss);
  CHECK(*run.progressive_loss == *other.progressive_loss);
  CHECK(run.examples == other.examples);
  CHECK(other.global_step == 2 * kRows);
  CHECK(run.global_step == 2 * (kRows + 3));
  CHECK(run.local_steps == std::vector<int64_t>{2 * (kRows + 3)});
  CHECK(run.gradients_skipped == 6);
  REQUIRE(run.workers.size() == 1);
  CHECK(run.workers[0].gradients_skipped == 6);
  CHECK(other.gradients_skipped == 0);
}

TEST_CASE("skip: nothing is applied of such a gradient, and its loss is in no mean; its step counts") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    for (const TableKind table : {TableKind::kNone, TableKind::kRange, TableKind::kHash}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(static_cast<int>(table));
      CheckAsWithout(Job(mode, table, 3), Job(mode, table, 0));
    }
  }
}

TEST_CASE("skip: the same with compression, whose rest stays, with clip_norm and with replicas") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    for (const TableKind table : {TableKind::kNone, TableKind::kRange}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(static_cast<int>(table));
      Config run = Job(mode, table, 3), other = Job(mode, table, 0);
      if (table == TableKind::kNone)
        run.net.compress.push = other.net.compress.push = net::Compression::kInt8;
      CheckAsWithout(run, other);
      run.train.optimizer.clip_norm = other.train.optimizer.clip_norm = 0.3;
      CheckAsWithout(run, other);
      run.train.optimizer.clip_norm = other.train.optimizer.clip_norm = std::nullopt;
      run.failure.replicas = other.failure.replicas = 1;
      run.failure.replica_check = 100000;
      CheckAsWithout(run, other);
    }
  }
}

TEST_CASE(
    "skip: in sync the other workers' gradients are the round, with the same bits for any number of ps") {
  for (const TableKind table : {TableKind::kNone, TableKind::kRange, TableKind::kHash}) {
    std::string crc;
    for (const int ps : {1, 3}) {
      const RunSummary run = Run(Job(TrainMode::kSync, table, 3, ps, 3));
      CHECK(run.deterministic);
      CHECK(run.gradients_skipped == 6);
      CHECK(run.global_step == 2 * (kRows + 3) / 3);
      CHECK(run.examples == 2 * kRows);
      if (crc.empty()) crc = *run.model_crc;
      CHECK(*run.model_crc == crc);
    }
  }
}

TEST_CASE("skip: with leases every batch is taken once, and the run ends") {
  Config config = Job(TrainMode::kAsync, TableKind::kNone, 3, 2, 2);
  config.data.split = Split::kDynamic;
  config.train.in_flight = 2;
  const RunSummary run = Run(config);
  CHECK(run.global_step == 2 * (kRows + 3));
  CHECK(run.examples == 2 * kRows);
  CHECK(run.gradients_skipped == 6);
}

TEST_CASE("skip: after the limit in a row the run ends as diverged, in every mode") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    Config config = Job(mode, TableKind::kNone, 5, 1, 1);
    config.hooks.skip_limit = 5;
    CHECK(Run(config).gradients_skipped == 10);
    config.hooks.skip_limit = 4;
    try {
      Run(config);
      FAIL("it went on");
    } catch (const Failure& failure) {
      CHECK(failure.code() == ExitCode::kDiverged);
      const std::string text = failure.what();
      CAPTURE(text);
      CHECK(
          text.find("worker 0, local step 25: 4 gradients in a row were left out (hooks.skip_limit = 4), and "
                    "the next: the loss is inf, and in its gradient ") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace dtrain
