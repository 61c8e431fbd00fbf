// Whole clusters that go on with other rows: data.scale stays that of the checkpoint for every worker, since
// the weights mean nothing to features with another scale.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr int kRows = 40;

// Rows with two features of very different size; the label is whether the row is in the upper half. The
// `more` other features are 1 in every row.
std::string Rows(int more) {
  std::string rows = "y,a,b", ones;
  for (int i = 0; i < more; ++i) rows += fmt::format(",c{}", i), ones += ",1";
  rows += "\n";
  for (int i = 0; i < kRows; ++i) {
    rows += fmt::format("{},{},{}{}\n", i < kRows / 2 ? 0 : 1, i % 7, 100 * i, ones);
  }
  return rows;
}

class Job {
 public:
  explicit Job(int more = 0) : more_(more) { Write("train.csv", Rows(more)), Write("test.csv", Rows(more)); }
  ~Job() { std::filesystem::remove_all(directory_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Adds a row that changes mean and deviation of both features a lot.
  void AppendFarRow() {
    std::string row = "1,70000,-9000000";
    for (int i = 0; i < more_; ++i) row += ",1";
    Write("train.csv", Rows(more_) + row + "\n");
  }

  Config At(int64_t steps, double learning_rate, Split split) const {
    Config config = LinearCluster(2, 2, steps);
    config.model.kind = ModelKind::kLogistic;
    config.model.inputs = 2 + more_;
    config.data.train.format = config.data.test.format = DataFormat::kCsv;
    config.data.train.path = directory_ + "/train.csv";
    config.data.test.path = directory_ + "/test.csv";
    config.data.train.label = config.data.test.label = "y";
    config.data.scale = FeatureScale::kStandard;
    config.data.split = split;
    config.train.batch_size = 10;
    config.train.mode = TrainMode::kSync;
    config.train.optimizer.learning_rate = learning_rate;
    config.failure.worker_lost = WorkerLost::kWait;
    config.checkpoint.dir = directory_ + "/ckpt";
    config.checkpoint.every_secs = 0;
    config.eval.by = EvalBy::kAll;
    return config;
  }

  FittedScale SavedScale() const {
    const CheckpointDirectory saved(directory_ + "/ckpt");
    const Manifest manifest = ReadManifest(saved.path() + "/" + saved.List().front().name);
    REQUIRE(manifest.inputs.has_value());
    REQUIRE(manifest.inputs->scale.shift.size() == 2);
    return manifest.inputs->scale;
  }

 private:
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ + "/" + name) << content;
  }

  const int more_;
  const std::string directory_ = testing::NewDirectory();
};

TEST_CASE("resume: every worker scales as the checkpoint has it, whatever the rows are now") {
  Job job;
  const RunSummary first = Run(job.At(200, 0.5, Split::kShard));
  REQUIRE(first.test_loss.has_value());
  CHECK(*first.test_accuracy > 0.9);
  const FittedScale scale = job.SavedScale();
  job.AppendFarRow();
  // Steps that change nothing: test rows depend on the scale alone.
  const RunSummary second = Run(job.At(202, 1e-30, Split::kShard));
  CHECK(second.global_step == 202);
  CHECK(*second.test_loss == doctest::Approx(*first.test_loss).epsilon(1e-6));
  for (const auto& accuracy : second.worker_accuracy) {
    REQUIRE(accuracy.has_value());
    CHECK(*accuracy == *first.test_accuracy);
  }
  CHECK(job.SavedScale() == scale);
}

TEST_CASE("resume: batches that worker 0 deals out are scaled so too") {
  std::string crc;
  for (const Split split : {Split::kShard, Split::kFeed}) {
    CAPTURE(static_cast<int>(split));
    Job job;
    Run(job.At(50, 0.5, split));
    job.AppendFarRow();
    const RunSummary second = Run(job.At(70, 0.5, split));
    REQUIRE(second.model_crc.has_value());
    if (crc.empty()) crc = *second.model_crc;
    CHECK(*second.model_crc == crc);
  }
}

TEST_CASE(
    "resume: a form that no message holds is in no checkpoint, and each worker scales by its own rows") {
  Job job(17000);
  Run(job.At(3, 0.01, Split::kShard));
  const CheckpointDirectory saved(job.At(3, 0.01, Split::kShard).checkpoint.dir);
  CHECK_FALSE(ReadManifest(saved.PathOf(saved.List().front().name)).inputs.has_value());
  CHECK(Run(job.At(4, 0.01, Split::kShard)).global_step == 4);
}

TEST_CASE("resume: never fits the scale to the rows that there are") {
  Job job;
  Run(job.At(20, 0.5, Split::kShard));
  const FittedScale scale = job.SavedScale();
  job.AppendFarRow();
  Config config = job.At(21, 0.5, Split::kShard);
  config.checkpoint.resume = "never";
  Run(config);
  CHECK(job.SavedScale() != scale);
}

}  // namespace
}  // namespace dtrain
