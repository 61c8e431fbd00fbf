// Saves and restores over whole runs: any number of ps restores what several wrote, directly or by ps 0.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/inproc_transport.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using testing::NamesIn;

constexpr int64_t kSteps = 12;

// A range of one ps has two blocks, and every checkpoint has the same number of workers.
Config SharedRun(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir = "") {
  Config config = LinearCluster(ps, 2, steps);
  config.model.inputs = 300000;
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.kind = optimizer;
  config.train.optimizer.learning_rate = 1e-6;
  config.failure.detect_s = 20;
  config.checkpoint.dir = dir;
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

// Runs each task with its own config, as on machines without a shared disk; returns ps 0's summary.
RunSummary RunEach(const Config& config, const std::function<void(TaskId, Config*)>& change,
                   const TaskOptions& options = {}) {
  net::InprocTransport transport;
  std::vector<std::future<RunSummary>> tasks;
  const auto start = [&](Role role, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const TaskId task{role, static_cast<int>(i)};
      tasks.push_back(std::async(std::launch::async, [&, task] {
        Config own = config;
        change(task, &own);
        LogOptions quiet;
        quiet.level = LogLevel::kError;
        quiet.standard_error = false;
        Logger log(TaskName(task), quiet);
        return RunTask(own, task, transport, log, options);
      }));
    }
  };
  start(Role::kPs, config.cluster.ps.size());
  start(Role::kWorker, config.cluster.worker.size());
  for (const auto& task : tasks) task.wait();
  return tasks[0].get();
}

// The ps that see the directory of ps 0.
enum class See { kAll, kSome, kNone };

void OwnDisk(See see, TaskId task, Config* config) {
  const bool first = task.role == Role::kPs && task.index == 0;
  const bool sees = task.role == Role::kPs && (see == See::kAll || (see == See::kSome && task.index == 1));
  if (!first && !sees)
    config->checkpoint.dir = task.index % 2 == 0 ? "" : config->checkpoint.dir + "-of-no-one";
}

TEST_CASE(
    "shared checkpoint: whether all ps see the directory, some or none, any number restores the same bits") {
  const std::string undisturbed = *Run(SharedRun(2, OptimizerKind::kAdam, kSteps)).model_crc;
  for (const See see : {See::kAll, See::kSome, See::kNone}) {
    for (const int saves : {1, 2, 3}) {
      CAPTURE(static_cast<int>(see));
      CAPTURE(saves);
      const std::string dir = testing::NewDirectory();
      const auto own = [see](TaskId task, Config* config) { OwnDisk(see, task, config); };
      const RunSummary first = RunEach(SharedRun(saves, OptimizerKind::kAdam, 5, dir), own);
      CHECK(first.checkpoint == dir + "/step-000000005");
      CHECK(NamesIn(dir) == std::vector<std::string>{"step-000000000", "step-000000005"});
      const int restores = saves % 3 + 1;
      CHECK(RunEach(SharedRun(restores, OptimizerKind::kAdam, kSteps, dir), own).model_crc == undisturbed);
      CHECK_FALSE(std::filesystem::exists(dir + "-of-no-one"));
    }
  }
}

TEST_CASE("shared checkpoint: damage in a part that ps 0 sends is found, and the next older one restored") {
  const std::string undisturbed = *Run(SharedRun(2, OptimizerKind::kSgd, kSteps)).model_crc;
  const std::string dir = testing::NewDirectory();
  const auto own = [](TaskId task, Config* config) { OwnDisk(See::kNone, task, config); };
  Config config = SharedRun(2, OptimizerKind::kSgd, 8, dir);
  config.checkpoint.every_steps = 4;
  RunEach(config, own);
  Damage(dir + "/step-000000008/shard-1-of-2");
  CHECK(RunEach(SharedRun(2, OptimizerKind::kSgd, kSteps, dir), own).model_crc == undisturbed);
  CHECK(NamesIn(dir).back() == "step-000000012");
}

TEST_CASE("shared checkpoint: a path that only ps 0 sees is restored by all") {
  const std::string undisturbed = *Run(SharedRun(2, OptimizerKind::kSgd, kSteps)).model_crc;
  const std::string dir = testing::NewDirectory();
  Run(SharedRun(2, OptimizerKind::kSgd, 5, dir));
  const auto own = [&](TaskId task, Config* config) {
    if (task.role == Role::kPs && task.index == 0) config->checkpoint.resume = dir + "/step-000000005";
  };
  CHECK(RunEach(SharedRun(3, OptimizerKind::kSgd, kSteps), own).model_crc == undisturbed);
}

TEST_CASE("shared checkpoint: checkpoint.dir that ps 0 does not have is refused with both values") {
  const std::string dir = testing::NewDirectory();
  Config config = SharedRun(1, OptimizerKind::kSgd, 4, dir);
  config.failure.startup_timeout_s = 1;
  const auto own = [](TaskId task, Config* own_config) {
    if (task.role == Role::kPs) own_config->checkpoint.dir = "";
  };
  CHECK_THROWS_WITH_AS(
      RunEach(config, own),
      doctest::Contains(("checkpoint.dir is not set on ps 0 and " + dir + " on worker").c_str()), PeerLost);
}

// Makes worker 0 fail when the run has begun to save its second checkpoint.
class FailingHook : public Hook {
 public:
  void AfterStep(const StepView& view, HookRequests* requests) override {
    if (view.local_step == 4) requests->save = true;
    if (view.local_step == 5) throw Failure(ExitCode::kInternal, "failed by the test");
  }
};

TEST_CASE("shared checkpoint: worker 0 lost for good beside a save changes nothing for the save") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync, TrainMode::kSsp}) {
    const std::string dir = testing::NewDirectory();
    Config config = SharedRun(2, OptimizerKind::kSgd, 200, dir);
    config.train.mode = mode;
    TaskOptions options;
    options.more_hooks = [](TaskId task) {
      HookList hooks;
      if (task.index == 0) hooks.push_back(std::make_unique<FailingHook>());
      return hooks;
    };
    const auto own = [](TaskId task, Config* own_config) { OwnDisk(See::kNone, task, own_config); };
    const RunSummary summary = RunEach(config, own, options);
    CHECK(summary.status == "done");
    CHECK(summary.global_step == 200);
    CHECK(summary.lost_workers == std::vector<int64_t>{0});
    CHECK(summary.checkpoint == dir + "/step-000000200");
    CHECK(NamesIn(dir).size() == 3);
  }
}

}  // namespace
}  // namespace dtrain
