// Whole clusters with data.split: dynamic, of which one worker is late or comes back, or which stop with
// leases out. Row i has one feature, i, and a target so far away that its gradient is -1 whatever the weights
// are. So weight i counts how often row i was applied.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/task/watched_cluster_test_util.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 60;  // the result shows the weights of such a model

// Rows of csv, removed with this object.
class Rows {
 public:
  Rows() {
    std::ofstream file(directory_ + "/rows.csv");
    file << "target";
    for (int64_t column = 0; column < kRows; ++column) file << ",c" << column;
    for (int64_t row = 0; row < kRows; ++row) {
      file << "\n36028797018963968";  // 2^55
      for (int64_t column = 0; column < kRows; ++column) {
        file << (column == row ? ",1.3877787807814457e-17" : ",0");  // 2^-56
      }
    }
    file << "\n";
  }
  ~Rows() { std::filesystem::remove_all(directory_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  Config Job(int ps, int workers, int64_t epochs, TrainMode mode = TrainMode::kAsync) const {
    Config config = LinearCluster(ps, workers, 0);
    config.model.inputs = kRows;
    config.data.train = DataSourceConfig();
    config.data.train.format = DataFormat::kCsv;
    config.data.train.path = {directory_ + "/rows.csv"};
    config.data.train.label = "target";
    config.data.split = Split::kDynamic;
    config.train.mode = mode;
    config.train.batch_size = 2;
    config.train.steps.reset();
    config.train.epochs = epochs;
    config.train.reduce = Reduce::kSum;
    config.train.optimizer.learning_rate = 1;
    config.train.optimizer.clip_value = 16;  // the bias
    config.failure.detect_s = 60;            // nobody is given up for its silence
    return config;
  }
  std::string checkpoints() const { return directory_ + "/checkpoints"; }

 private:
  const std::string directory_ = testing::NewDirectory();
};

// Checks that every row was applied so often on every ps.
void CheckRows(const RunSummary& summary, int64_t times) {
  const std::vector<float>& weights = summary.weights.at("weights/W1");
  REQUIRE(weights.size() == kRows);
  const auto is_right = [&](float weight) { return std::abs(weight - static_cast<float>(times)) < 0.01F; };
  CHECK(std::count_if(weights.begin(), weights.end(), is_right) == kRows);
  CHECK(summary.examples == times * kRows);
}

RunSummary Watch(const RandomCase& of) {
  LogOptions log;
  log.standard_error = false;
  const CaseOutcome outcome = WatchedCluster(of, log).Run();
  for (const std::string& problem : outcome.problems) FAIL_CHECK(problem);
  REQUIRE_FALSE(outcome.summaries.empty());
  return outcome.summaries.front();
}

TEST_CASE("dynamic: a worker that joins late takes part in the epoch that has begun") {
  const Rows rows;
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    RandomCase late;
    late.config = rows.Job(2, 2, 1, mode);
    late.config.cluster.min_workers = 1;
    late.late_worker = 1;
    late.late_at = 5;
    const RunSummary summary = Watch(late);
    CheckRows(summary, 1);
    CHECK(summary.local_steps.at(1) > 0);
  }
}

TEST_CASE("dynamic: a worker that is started again before it was given up sends no block twice") {
  const Rows rows;
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    RandomCase torn;
    torn.config = rows.Job(2, 2, 3);
    torn.config.failure.worker_lost = worker_lost;
    torn.loss = {LossKind::kTorn, 1, 2, 1, /*returns=*/true};
    const RunSummary summary = Watch(torn);
    CheckRows(summary, 3);
    CHECK(summary.steps_given_again == 1);
  }
}

TEST_CASE("dynamic: a run that train.steps or max_secs ends goes on with the batches that were not taken") {
  const Rows rows;
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    for (const bool in_time : {false, true}) {
      Config config = rows.Job(2, 3, 1000000, mode);
      config.checkpoint.dir = rows.checkpoints();
      config.checkpoint.every_secs = 0;
      Config first = config;
      if (in_time) first.train.max_secs = 0.05;
      if (!in_time) first.train.steps = 137;
      const int64_t epochs = Run(first).examples / kRows + 2;  // two are open at most
      config.train.epochs = epochs;
      config.cluster.worker.pop_back();
      CheckRows(Run(config), epochs);
      std::filesystem::remove_all(rows.checkpoints());
    }
  }
}

}  // namespace
}  // namespace dtrain
