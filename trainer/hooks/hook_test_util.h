// A worker for tests of hooks: a StepView that the test fills, and a log that it can read.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/testing/files.h"
#include "trainer/config/model_config.h"
#include "trainer/hooks/hook.h"

namespace dtrain {

// A source that stays at one batch of an epoch.
class StandingSource : public BatchSource {
 public:
  bool Next(Batch*) override { return false; }
  void ReadAhead() override {}
  void Seek(int64_t) override {}
  void Follow(const DataPlan&) override {}
  const DataPlan& plan() const override { return plan_; }
  int64_t epoch() const override { return epoch_; }
  int64_t batch_in_epoch() const override { return batch_; }
  int64_t batches_per_epoch() const override { return 10; }

  DataPlan plan_;
  int64_t epoch_ = 0;
  int64_t batch_ = 0;
};

// Worker 1 with a model of one matrix [2, 3], "weights/W".
struct FakeStep {
  static Layout OneMatrix() {
    Variable matrix;
    matrix.name = "weights/W";
    matrix.rows = 2;
    matrix.cols = 3;
    return PlaceVariables({matrix}, 1, PlacementConfig());
  }

  const Layout layout = OneMatrix();
  StandingSource source;
  StepTimes times;
  std::vector<float> weights = std::vector<float>(6, 1.0f);
  StepView view{{Role::kWorker, 1}, layout, source, times, weights.data()};
};

// A log in a file of the test's directory, and its lines.
class FileLog {
 public:
  FileLog() {
    options_.directory = testing::NewDirectory();
    options_.standard_error = false;
    log_ = std::make_unique<Logger>("worker 0", options_);
  }
  Logger& log() { return *log_; }
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::ifstream file(log_->path());
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

 private:
  LogOptions options_;
  std::unique_ptr<Logger> log_;
};

}  // namespace dtrain
