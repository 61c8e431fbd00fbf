// Runs that begin with the weights of another run (checkpoint.start_from). Resuming with another data.seed
// begins the data anew too, so a run of several parts is the reference for a chain of runs.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr int64_t kSteps = 6;

Config Rounds(Config config, OptimizerKind kind) {
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.kind = kind;
  config.train.optimizer.learning_rate = 0.02;
  config.failure.detect_s = 20;
  config.checkpoint.every_secs = 0;
  return config;
}

Config Digits(int ps, OptimizerKind kind) {
  Config config = Rounds(DigitsCluster(ps, 2, 100), kind);
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {12};
  config.data.train.rows = 600;
  config.data.test.rows = 200;
  return config;
}

// A table of 4096 rows, most of which no row of the data has.
Config Sparse(int ps, OptimizerKind kind) {
  static const std::string rows = [] {
    const std::string path = testing::NewDirectory() + "/rows.svm";
    std::ofstream file(path);
    for (int64_t row = 0; row < 100; ++row) {
      file << row % 2;
      for (int64_t i = 1; i <= 5; ++i) file << " " << (row * row * 7919 + i * 50021) % 4096 + 1 << ":1";
      file << "\n";
    }
    return path;
  }();
  Config config = Rounds(LinearCluster(ps, 2, 0), kind);
  config.model.kind = ModelKind::kLogistic;
  config.model.inputs = 4096;
  config.data.train.format = config.data.test.format = DataFormat::kLibsvm;
  config.data.train.path = config.data.test.path = {rows};
  config.train.batch_size = 5;
  return config;
}

// Day `day` of a job: its data in an order of its own.
Config Day(Config config, int64_t day, int64_t steps, const std::string& directory) {
  config.data.seed = day;
  config.train.steps = steps;
  config.checkpoint.dir = directory;
  return config;
}

Config From(Config config, const std::string& start_from) {
  config.checkpoint.start_from = start_from;
  return config;
}

std::string ErrorOf(const Config& config) {
  try {
    Run(config);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Manifest Newest(const std::string& directory) {
  const CheckpointDirectory saved(directory);
  return ReadManifest(saved.PathOf(saved.List().front().name));
}

TEST_CASE("start_from: a chain of three runs is one run of three parts, by any optimizer and number of ps") {
  for (const auto& job : {Digits, Sparse}) {
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
                                     OptimizerKind::kRmsprop, OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
      CAPTURE(static_cast<int>(kind));
      const std::string whole = testing::NewDirectory(), days = testing::NewDirectory();
      std::string before;
      for (const int64_t day : {1, 2, 3}) {
        CAPTURE(day);
        const RunSummary expected = Run(Day(job(1, kind), day, day * kSteps, whole));
        const std::string directory = fmt::format("{}/{}", days, day);
        const int ps = day == 2 ? 3 : static_cast<int>(day);
        const RunSummary run = Run(From(Day(job(ps, kind), day, kSteps, directory), before));
        CHECK(run.status == "done");
        CHECK(run.model_crc == expected.model_crc);
        CHECK(run.test.loss == expected.test.loss);
        CHECK(run.global_step == kSteps);
        CHECK(run.local_steps == std::vector<int64_t>{kSteps, kSteps});
        CHECK(run.examples == expected.examples / day);
        CHECK(run.deterministic);
        const Origin origin = Newest(directory).origin;
        const bool slots = kind != OptimizerKind::kSgd;
        CHECK(origin.path == (day == 1 ? "" : fmt::format("{}/step-{:09}", before, kSteps)));
        CHECK(origin.updates == (slots ? (day - 1) * kSteps : 0));
        before = directory;
      }
    }
  }
}

TEST_CASE("start_from: begins a schedule anew, with the loss of the checkpoint") {
  const std::string first = testing::NewDirectory();
  Config config = Digits(1, OptimizerKind::kAdam);
  const RunSummary trained = Run(Day(config, 1, 40, first));
  config.train.optimizer.schedule.warmup_steps = 1000000000;  // one step moves nothing
  config.train.optimizer.learning_rate = 1e-6;
  const RunSummary begun = Run(From(Day(config, 1, 1, ""), first));
  CHECK(*begun.test.loss == doctest::Approx(*trained.test.loss).epsilon(1e-6));
  CHECK(begun.global_step == 1);
}

TEST_CASE("start_from: a run with a checkpoint of its own goes on from that, and start_from is not read") {
  const std::string first = testing::NewDirectory() + "/first", second = testing::NewDirectory();
  const Config job = Digits(2, OptimizerKind::kAdam);
  Run(Day(job, 1, kSteps, first));
  const std::string whole = *Run(From(Day(job, 2, 2 * kSteps, ""), first)).model_crc;
  Run(From(Day(job, 2, kSteps, second), first));
  std::filesystem::remove_all(first);
  const RunSummary resumed = Run(From(Day(Digits(3, OptimizerKind::kAdam), 2, 2 * kSteps, second), first));
  CHECK(resumed.model_crc == whole);  // the bias correction goes on too
  CHECK(resumed.global_step == 2 * kSteps);
  Config never = From(Day(job, 2, kSteps, second), first);
  never.checkpoint.resume = "never";
  CHECK(ErrorOf(never).find(first) != std::string::npos);
}

TEST_CASE("start_from: of a directory the best checkpoint, else the newest that is whole") {
  const std::string first = testing::NewDirectory();
  const Config job = Digits(1, OptimizerKind::kSgd);
  for (const int64_t steps : {2, 4, 6}) Run(Day(job, 1, steps, first));
  const auto origin = [&] {
    const std::string second = testing::NewDirectory();
    Run(From(Day(job, 2, 1, second), first + "/"));
    return std::filesystem::path(Newest(second).origin.path).filename().string();
  };
  std::filesystem::resize_file(first + "/step-000000006/shard-0-of-1", 100);
  CHECK(origin() == "step-000000004");
  CheckpointDirectory(first).WriteBest("step-000000002");
  CHECK(origin() == "step-000000002");
  const std::string damaged = first + "/step-000000006";
  CHECK(ErrorOf(From(Day(job, 2, 1, ""), damaged)).find(damaged) != std::string::npos);
  CHECK(ErrorOf(From(Day(job, 2, 1, ""), testing::NewDirectory()))
            .find("there is no complete checkpoint. Name checkpoint.dir") != std::string::npos);
}

TEST_CASE("start_from: another optimizer takes the weights, and its slots begin anew") {
  for (const auto& job : {Digits, Sparse}) {
    const std::string first = testing::NewDirectory();
    const RunSummary trained = Run(Day(job(1, OptimizerKind::kAdagrad), 1, 30, first));
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
      CAPTURE(static_cast<int>(kind));
      std::string crc;
      for (const int ps : {1, 3}) {
        const std::string second = testing::NewDirectory();
        const RunSummary run = Run(From(Day(job(ps, kind), 2, 3, second), first));
        CHECK(Newest(second).origin.updates == 0);
        if (crc.empty()) crc = *run.model_crc;
        CHECK(run.model_crc == crc);
      }
      Config still = From(Day(job(1, kind), 1, 1, ""), first);
      still.train.optimizer.learning_rate = 1e-9;
      if (kind == OptimizerKind::kFtrl) continue;  // its rate is in z too
      CHECK(*Run(still).test.loss == doctest::Approx(*trained.test.loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("start_from: another model is refused with both values and the remedy") {
  const std::string first = testing::NewDirectory();
  Run(Day(Digits(1, OptimizerKind::kSgd), 1, 2, first));
  Config wider = From(Day(Digits(1, OptimizerKind::kSgd), 2, 2, ""), first);
  wider.model.hidden = {13};
  const std::string shapes = ErrorOf(wider);
  CHECK(shapes.find("another model: biases/b1 is 12 x 1 in the checkpoint and 13 x 1 in this run.") !=
        std::string::npos);
  CHECK(shapes.find("or another checkpoint.") != std::string::npos);
  Config other = From(Day(Digits(1, OptimizerKind::kSgd), 2, 2, ""), first);
  other.model.activation = Activation::kTanh;
  const std::string meaning = ErrorOf(other);
  CHECK(meaning.find("model.activation") != std::string::npos);
  CHECK(meaning.find("without checkpoint.start_from") != std::string::npos);
}

// Rows of two columns in a file of their own.
std::string Rows(int rows, int labels_from, double times) {
  const std::string path = testing::NewDirectory() + "/rows.csv";
  std::ofstream file(path);
  file << "y,a,b\n";
  for (int i = 0; i < rows; ++i) file << (i >= labels_from) << "," << i % 7 << "," << times * i << "\n";
  return path;
}

Config OnRows(const std::string& path, const std::string& directory) {
  Config config = Rounds(LinearCluster(1, 1, 8), OptimizerKind::kSgd);
  config.model.kind = ModelKind::kLogistic;
  config.model.inputs = 2;
  config.data.train.format = DataFormat::kCsv;
  config.data.train.path = {path};
  config.data.train.label = "y";
  config.data.scale = FeatureScale::kStandard;
  config.train.batch_size = 10;
  config.checkpoint.dir = directory;
  return config;
}

TEST_CASE("start_from: rows are scaled as the checkpoint's weights were trained") {
  const std::string first = testing::NewDirectory(), second = testing::NewDirectory();
  Run(OnRows(Rows(40, 20, 1), first));
  Run(From(OnRows(Rows(50, 20, 1000), second), first));
  REQUIRE(Newest(first).inputs);
  CHECK(Newest(second).inputs->scale == Newest(first).inputs->scale);
}

TEST_CASE("start_from: classes that the rows of the day lack keep their names") {
  const auto softmax = [](const char* last, const std::string& directory) {
    const std::string path = testing::NewDirectory() + "/rows.csv";
    std::ofstream file(path);
    file << "y,a,b\n";
    for (int i = 0; i < 30; ++i)
      file << (i % 3 == 0 ? "elm" : i % 3 == 1 ? "oak" : last) << "," << i << ",1\n";
    file.close();
    Config config = OnRows(path, directory);
    config.model.kind = ModelKind::kSoftmax;
    config.model.outputs = 3;
    return config;
  };
  const std::string first = testing::NewDirectory(), second = testing::NewDirectory();
  Run(softmax("yew", first));
  Run(From(softmax("oak", second), first));
  REQUIRE(Newest(second).inputs);
  CHECK(Newest(second).inputs->classes == std::vector<std::string>{"elm", "oak", "yew"});
  CHECK(ErrorOf(From(softmax("fir", ""), first))
            .find("y = fir; must be elm, oak or yew (data.classes, or those of") != std::string::npos);
}

TEST_CASE("start_from: a run that is done says when the data are others than those that it was trained on") {
  const std::string directory = testing::NewDirectory();
  Run(OnRows(Rows(40, 20, 1), directory));
  const auto again = [&](const std::string& rows) { return Run(OnRows(rows, directory)); };
  CHECK(again(Rows(40, 20, 1)).status == "already_done");
  CHECK_FALSE(again(Rows(40, 20, 1)).other_data);
  const RunSummary longer = again(Rows(50, 20, 1));
  CHECK(longer.status == "already_done");
  CHECK(longer.other_data == "data.train has 50 rows here and had 40 there");
  CHECK(again(Rows(40, 21, 1)).other_data == "the rows of data.train have other labels here than there");
}

}  // namespace
}  // namespace dtrain
