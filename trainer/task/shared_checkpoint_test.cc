// Saves and restores over whole runs: any number of ps restores what several wrote, directly or by ps 0. What
// is told of damage and of other models: trainer/leader/restore_test.cc.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "net/inproc_transport.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
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

// The same of a model of sparse rows: the weights are rows of a table, in several pieces on each ps.
Config SparseRun(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir = "") {
  static const std::string rows = [] {
    const std::string path = testing::NewDirectory() + "/rows.svm";
    std::ofstream file(path);
    for (int64_t row = 0; row < 200; ++row) {
      file << row % 2;
      for (int64_t i = 1; i <= 9; ++i) file << " " << (row * row * 7919 + i * 50021) % 1000000 + 1 << ":1";
      file << "\n";
    }
    return path;
  }();
  Config config = SharedRun(ps, optimizer, steps, dir);
  config.model.kind = ModelKind::kLogistic;
  config.model.inputs = 1000000;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {rows};
  config.train.batch_size = 5;
  config.train.optimizer.learning_rate = 0.01;
  return config;
}

// The same of a hash table, whose keys come late and leave: candidates and ages count after a restore.
Config HashRun(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir = "") {
  Config config = SparseRun(ps, optimizer, steps, dir);
  config.model.table = TableKind::kHash;
  config.model.inputs = kKeyInputs;
  config.model.admit_after = 2;
  config.model.evict_after = 4;
  config.data.whole_keys = true;
  return config;
}

Config WithLayers(Config config) {
  config.model.kind = ModelKind::kWideDeep;
  config.model.head = ModelHead::kLogistic;
  config.model.hidden = {5, 3};
  config.model.embedding = 2;
  config.model.init.kind = InitKind::kNormal;
  config.model.init.stddev = 0.1;
  return config;
}

// The same of models that have both: layers, and a table.
Config JointRun(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir = "") {
  return WithLayers(SparseRun(ps, optimizer, steps, dir));
}
Config JointHashRun(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir = "") {
  return WithLayers(HashRun(ps, optimizer, steps, dir));
}

void Damage(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put('\x55');
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
  int turn = 0;  // each model with each of See, and these with each number of ps
  for (const auto& job : {SharedRun, SparseRun, HashRun, JointRun, JointHashRun}) {
    const std::string undisturbed = *Run(job(2, OptimizerKind::kAdam, kSteps, "")).model_crc;
    ++turn;
    for (const See see : {See::kAll, See::kSome, See::kNone}) {
      const int saves = (static_cast<int>(see) + turn) % 3 + 1, restores = saves % 3 + 1;
      CAPTURE(static_cast<int>(see));
      CAPTURE(saves);
      const std::string dir = testing::NewDirectory();
      const auto own = [see](TaskId task, Config* config) { OwnDisk(see, task, config); };
      const RunSummary first = RunEach(job(saves, OptimizerKind::kAdam, 5, dir), own);
      CHECK(first.checkpoint == dir + "/step-000000005");
      CHECK(NamesIn(dir) == std::vector<std::string>{"step-000000000", "step-000000005"});
      CHECK(RunEach(job(restores, OptimizerKind::kAdam, kSteps, dir), own).model_crc == undisturbed);
      CHECK_FALSE(std::filesystem::exists(dir + "-of-no-one"));
    }
  }
}

// Keeps worker 0 from its next step until the step before is saved, so that there is a checkpoint of each.
class WaitingHook : public Hook {
 public:
  explicit WaitingHook(std::string dir) : dir_(std::move(dir)) {}
  void AfterStep(const StepView& view, HookRequests*) override {
    const std::string path = dir_ + "/" + CheckpointName(view.local_step);
    const TimePoint deadline = Clock::now() + std::chrono::seconds(60);
    while (!std::filesystem::exists(path) && Clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

 private:
  const std::string dir_;
};

using Job = Config (*)(int ps, OptimizerKind optimizer, int64_t steps, const std::string& dir);

// Runs on rows and saves after every step, with two deltas after each checkpoint of all rows.
RunSummary RunDeltas(int ps, int64_t steps, const std::string& dir, See see = See::kAll,
                     Job job = SparseRun) {
  Config config = job(ps, OptimizerKind::kAdam, steps, dir);
  config.checkpoint.every_steps = 1;
  config.checkpoint.delta = 2;
  config.checkpoint.keep = 100;
  TaskOptions options;
  options.more_hooks = [&dir](TaskId task) {
    HookList hooks;
    if (task.index == 0) hooks.push_back(std::make_unique<WaitingHook>(dir));
    return hooks;
  };
  return RunEach(
      config, [see](TaskId task, Config* own) { OwnDisk(see, task, own); }, options);
}

std::string Step(const std::string& dir, int64_t step) { return dir + "/" + CheckpointName(step); }

TEST_CASE("shared checkpoint: deltas follow one of all rows, and any number of ps restores the same bits") {
  int turn = 0;  // of the numbers of ps that save
  for (const auto& [job, see] : {std::pair<Job, See>(SparseRun, See::kAll),
                                 {SparseRun, See::kNone},
                                 {JointRun, See::kAll},
                                 {JointRun, See::kNone},
                                 {HashRun, See::kAll},
                                 {HashRun, See::kNone},
                                 {JointHashRun, See::kNone}}) {
    const std::string undisturbed = *Run(job(2, OptimizerKind::kAdam, kSteps, "")).model_crc;
    const auto own = [seen = see](TaskId task, Config* config) { OwnDisk(seen, task, config); };
    turn ^= 1;
    for (const int saves : {1 + turn, 3 + 2 * turn}) {
      CAPTURE(static_cast<int>(see));
      CAPTURE(saves);
      const std::string dir = testing::NewDirectory();
      CHECK(RunDeltas(saves, 8, dir, see, job).checkpoint == Step(dir, 8));
      for (int64_t step = 0; step <= 8; ++step) {
        CAPTURE(step);
        const Manifest manifest = ReadManifest(Step(dir, step));
        CHECK(manifest.base.has_value() == (step % 3 != 0));
        if (manifest.base) CHECK(manifest.base->step == step / 3 * 3);
      }
      CHECK(ReadManifest(Step(dir, 7)).bytes() < ReadManifest(Step(dir, 6)).bytes());
      const int restores = saves % 5 + 1;
      CHECK(RunEach(job(restores, OptimizerKind::kAdam, kSteps, dir), own).model_crc == undisturbed);
    }
  }
}

TEST_CASE("shared checkpoint: a run that goes on from a delta begins with a checkpoint of all rows") {
  const std::string undisturbed = *Run(SparseRun(2, OptimizerKind::kAdam, kSteps)).model_crc;
  const std::string dir = testing::NewDirectory();
  RunDeltas(2, 2, dir);
  REQUIRE(ReadManifest(Step(dir, 2)).base);
  CHECK(RunDeltas(2, kSteps, dir).model_crc == undisturbed);
  for (int64_t step = 3; step <= kSteps; ++step) {
    CHECK(ReadManifest(Step(dir, step)).base.has_value() == (step % 3 != 0));
  }
}

TEST_CASE("shared checkpoint: where the base of the newest ones is damaged, an older chain is restored") {
  const std::string undisturbed = *Run(SparseRun(2, OptimizerKind::kAdam, kSteps)).model_crc;
  for (const See see : {See::kAll, See::kNone}) {
    CAPTURE(static_cast<int>(see));
    const std::string dir = testing::NewDirectory();
    RunDeltas(2, 8, dir, see);
    Damage(Step(dir, 6) + "/shard-1-of-2");
    const auto own = [see](TaskId task, Config* config) { OwnDisk(see, task, config); };
    CHECK(RunEach(SparseRun(3, OptimizerKind::kAdam, kSteps, dir), own).model_crc == undisturbed);
  }
}

TEST_CASE("shared checkpoint: a delta is what a run begins with, as a checkpoint of all rows is") {
  const std::string whole = testing::NewDirectory(), deltas = testing::NewDirectory();
  Run(SparseRun(2, OptimizerKind::kAdam, 5, whole));
  RunDeltas(2, 5, deltas);
  REQUIRE(ReadManifest(Step(deltas, 5)).base);
  const auto begin = [](int ps, const std::string& from) {
    Config config = SparseRun(ps, OptimizerKind::kAdam, 4);
    config.checkpoint.start_from = from;
    return *Run(config).model_crc;
  };
  CHECK(begin(3, deltas) == begin(1, whole));
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

TEST_CASE("shared checkpoint: weights that only ps 0 sees are what all begin with, with any optimizer") {
  for (const auto& job : {SharedRun, SparseRun, HashRun, JointRun, JointHashRun}) {
    const std::string dir = testing::NewDirectory();
    Run(job(2, OptimizerKind::kAdam, 5, dir));
    for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kAdagrad}) {
      CAPTURE(static_cast<int>(kind));
      Config seen = job(1, kind, 4, "");
      seen.checkpoint.start_from = dir;
      const auto own = [&](TaskId task, Config* config) {
        if (task.role == Role::kPs && task.index == 0) config->checkpoint.start_from = dir;
      };
      CHECK(RunEach(job(3, kind, 4, ""), own).model_crc == Run(seen).model_crc);
    }
  }
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

// Makes worker 0 fail when the run has begun to save its second checkpoint.
class FailingHook : public Hook {
 public:
  void AfterStep(const StepView& view, HookRequests* requests) override {
    if (view.local_step == 4) requests->save = true;
    if (view.local_step == 5) throw Failure(ExitCode::kInternal, "failed by the test");
  }
};

TEST_CASE(
    "shared checkpoint: worker 0 lost for good beside a save changes nothing for the save, nor for the "
    "evaluation") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync, TrainMode::kSsp}) {
    const std::string dir = testing::NewDirectory();
    Config config = SharedRun(2, OptimizerKind::kSgd, 60, dir);
    config.train.mode = mode;
    config.data.test = config.data.train;
    config.data.test.rows = 4;
    TaskOptions options;
    options.more_hooks = [](TaskId task) {
      HookList hooks;
      if (task.index == 0) hooks.push_back(std::make_unique<FailingHook>());
      return hooks;
    };
    const auto own = [](TaskId task, Config* own_config) { OwnDisk(See::kNone, task, own_config); };
    const RunSummary summary = RunEach(config, own, options);
    CHECK(summary.status == "done");
    CHECK(summary.global_step == 60);
    CHECK(summary.lost_workers == std::vector<int64_t>{0});
    CHECK(summary.test.loss.has_value());
    CHECK(summary.checkpoint == dir + "/step-000000060");
    CHECK(std::filesystem::exists(*summary.checkpoint + "/manifest"));
    CHECK(NamesIn(dir).size() == 3);
  }
}

}  // namespace
}  // namespace dtrain
