#include "trainer/worker/progress.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace dtrain {
namespace {

// A source that stands at one batch of an epoch.
class StandingSource : public BatchSource {
 public:
  bool Next(Batch*) override { return false; }
  void ReadAhead() override {}
  void Seek(int64_t) override {}
  int64_t epoch() const override { return epoch_; }
  int64_t batch_in_epoch() const override { return batch_; }
  int64_t batches_per_epoch() const override { return 10; }

  int64_t epoch_ = 0;
  int64_t batch_ = 0;
};

std::vector<std::string> RowsOf(HooksConfig hooks, int64_t steps) {
  const char* root = std::getenv("TEST_TMPDIR");
  LogOptions options;
  options.directory = std::string(root == nullptr ? "/tmp" : root) + "/progress";
  options.standard_error = false;
  std::filesystem::remove_all(options.directory);
  Logger log("worker 0", options);
  Progress progress(hooks, log);
  progress.Begin();
  StandingSource source;
  for (int64_t step = 1; step <= steps; ++step) {
    source.epoch_ = (step - 1) / 10;
    source.batch_ = (step - 1) % 10;
    progress.OnStep(source, 2 * step, step, static_cast<float>(step), 3);
  }
  std::vector<std::string> rows;
  std::ifstream file(log.path());
  for (std::string row; std::getline(file, row);) rows.push_back(row);
  return rows;
}

TEST_CASE("progress: a row every log_every_steps local steps, with means since the row before") {
  HooksConfig hooks;
  hooks.log_every_steps = 4;
  const std::vector<std::string> rows = RowsOf(hooks, 11);
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].find(
            "epoch    1  batch      8/10      global step        16  local step         8  loss 6.5 ") !=
        std::string::npos);
}

TEST_CASE("progress: a row at the end of every log_every_epochs-th epoch") {
  HooksConfig hooks;
  hooks.log_every_steps = 0;
  hooks.log_every_epochs = 2;
  const std::vector<std::string> rows = RowsOf(hooks, 50);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].find("epoch    2  batch     10/10 ") != std::string::npos);
  CHECK(rows[1].find("epoch    4  batch     10/10 ") != std::string::npos);
}

}  // namespace
}  // namespace dtrain
