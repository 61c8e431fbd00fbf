// checkpoint.writer: ps over whole runs: what several ps wrote together, any number of ps restores.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using testing::NamesIn;

constexpr int64_t kSteps = 12;

// A range of one ps is two blocks, and every checkpoint has the same number of workers.
Config SharedRun(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir = "") {
  Config config = LinearCluster(ps, 2, steps);
  config.model.inputs = 300000;
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.kind = optimizer;
  config.train.optimizer.learning_rate = 1e-6;
  config.failure.detect_s = 20;
  config.checkpoint.dir = dir;
  config.checkpoint.writer = CheckpointWriter::kPs;
  return config;
}

void Damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put('\x55');
}

TEST_CASE("shared checkpoint: what 2 ps wrote goes on with 1, 3 and 5 ps to the bits of an undisturbed run") {
  for (const OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    CAPTURE(static_cast<int>(optimizer));
    const std::string undisturbed = *Run(SharedRun(2, optimizer, kSteps)).model_crc;
    const std::string dir = testing::NewDirectory();
    const RunSummary first = Run(SharedRun(2, optimizer, 5, dir));
    CHECK(first.model_crc != undisturbed);
    CHECK(first.checkpoint == dir + "/step-000000005");
    CHECK(NamesIn(dir) == std::vector<std::string>{"step-000000000", "step-000000005"});
    CHECK(std::filesystem::exists(dir + "/step-000000005/shard-1-of-2"));
    for (const int ps : {1, 3, 5}) {
      const std::string copy = testing::NewDirectory();
      std::filesystem::copy(dir, copy, std::filesystem::copy_options::recursive);
      const RunSummary rest = Run(SharedRun(ps, optimizer, kSteps, copy));
      CHECK(rest.global_step == kSteps);
      CHECK(rest.model_crc == undisturbed);
      CHECK(NamesIn(copy).back() == "step-000000012");
    }
  }
}

TEST_CASE("shared checkpoint: a damaged one is passed over, and one that is named is restored") {
  const std::string undisturbed = *Run(SharedRun(2, OptimizerKind::kAdam, kSteps)).model_crc;
  const std::string dir = testing::NewDirectory();
  Config config = SharedRun(2, OptimizerKind::kAdam, 8, dir);
  config.checkpoint.every_steps = 4;
  Run(config);
  Damage(dir + "/step-000000008/shard-1-of-2");
  const std::string elsewhere = testing::NewDirectory() + "/step-000000004";
  std::filesystem::copy(dir + "/step-000000004", elsewhere);
  CHECK(Run(SharedRun(3, OptimizerKind::kAdam, kSteps, dir)).model_crc == undisturbed);

  Config named = SharedRun(1, OptimizerKind::kAdam, kSteps, testing::NewDirectory());
  named.checkpoint.resume = elsewhere;
  CHECK(Run(named).model_crc == undisturbed);
  named.checkpoint.resume = dir + "/step-000000008";
  CHECK_THROWS_WITH_AS(Run(named), doctest::Contains("shard-1-of-2 is damaged at byte"), UserError);
}

TEST_CASE("shared checkpoint: one of another model ends the run and names the tensor") {
  const std::string dir = testing::NewDirectory();
  Run(SharedRun(2, OptimizerKind::kSgd, 2, dir));
  Config other = SharedRun(2, OptimizerKind::kSgd, 4, dir);
  other.model.inputs = 10;
  CHECK_THROWS_WITH_AS(Run(other), doctest::Contains("another model: "), UserError);
}

}  // namespace
}  // namespace dtrain
