// Whole clusters that save, stop and go on: a run in two parts equals the run in one.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// A directory for checkpoints, removed with this object.
class Directory {
 public:
  Directory() = default;
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path() const { return path_ + "/ckpt"; }
  // The checkpoints, newest first.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const ListedCheckpoint& listed : CheckpointDirectory(path()).List()) names.push_back(listed.name);
    return names;
  }

 private:
  const std::string path_ = testing::NewDirectory();
};

Config Rounds(int ps, int workers, int64_t steps, const std::string& directory) {
  Config config = DigitsCluster(ps, workers, 100);
  config.train.mode = TrainMode::kSync;
  config.train.steps = steps;
  config.failure.worker_lost = WorkerLost::kWait;
  config.checkpoint.dir = directory;
  config.checkpoint.every_secs = 0;
  return config;
}

void Use(OptimizerKind kind, Config* config) {
  config->train.optimizer.kind = kind;
  config->train.optimizer.learning_rate = kind == OptimizerKind::kAdam ? 0.01 : 0.1;
}

TEST_CASE("resume: 100 steps are 50 and 50 more, for each optimizer and any number of ps") {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
                                   OptimizerKind::kRmsprop, OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
    Config whole = Rounds(1, 2, 100, "");
    Use(kind, &whole);
    const RunSummary expected = Run(whole);
    Directory saved;
    Config first = Rounds(2, 2, 50, saved.path());
    Use(kind, &first);
    CHECK(Run(first).model_crc != expected.model_crc);
    for (const int ps : {1, 2, 3, 5}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(ps);
      Directory copy;
      std::filesystem::copy(saved.path(), copy.path(), std::filesystem::copy_options::recursive);
      Config second = Rounds(ps, 2, 100, copy.path());
      Use(kind, &second);
      const RunSummary resumed = Run(second);
      CHECK(resumed.model_crc == expected.model_crc);
      CHECK(resumed.global_step == 100);
      CHECK(resumed.local_steps == expected.local_steps);
      CHECK(resumed.examples == expected.examples);
      CHECK(resumed.deterministic);
      CHECK(resumed.checkpoint == copy.path() + "/step-000000100");
    }
  }
}

TEST_CASE("resume: async and ssp end at the step too, and count what was before") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    Directory saved;
    Config config = Rounds(2, 3, 60, saved.path());
    config.train.mode = mode;
    CHECK(Run(config).global_step == 60);
    config.train.steps = 200;
    config.cluster.ps.pop_back();
    const RunSummary resumed = Run(config);
    CHECK(resumed.global_step == 200);
    CHECK(resumed.local_steps[0] + resumed.local_steps[1] + resumed.local_steps[2] == 200);
    CHECK(resumed.examples == 200 * 50);
  }
}

TEST_CASE("resume: a run that has all its steps is already done, and saves nothing more") {
  Directory saved;
  const Config config = Rounds(2, 2, 20, saved.path());
  const RunSummary first = Run(config);
  const std::vector<std::string> names = saved.Names();
  CHECK(names == std::vector<std::string>{"step-000000020", "step-000000000"});
  const RunSummary again = Run(config);
  CHECK(again.status == "already_done");
  CHECK(again.model_crc == first.model_crc);
  CHECK(again.test_accuracy == first.test_accuracy);
  CHECK(saved.Names() == names);
}

TEST_CASE("resume: never begins anew, and its checkpoints are the newer ones") {
  Directory saved;
  Config config = Rounds(1, 2, 20, saved.path());
  const RunSummary first = Run(config);
  config.checkpoint.resume = "never";
  config.train.steps = 10;
  CHECK(Run(config).global_step == 10);
  CHECK(saved.Names().front() == "step-000000010");
  config.checkpoint.resume = "auto";
  config.train.steps = 20;
  CHECK(Run(config).model_crc == first.model_crc);
  config.checkpoint.resume = saved.path() + "/step-000000010";
  CHECK(Run(config).model_crc == first.model_crc);
}

TEST_CASE("resume: a damaged checkpoint is passed over") {
  Directory saved;
  Config config = Rounds(2, 2, 30, saved.path());
  config.checkpoint.every_steps = 10;
  const RunSummary first = Run(config);
  REQUIRE(saved.Names().size() >= 2);
  std::fstream file(saved.path() + "/step-000000030/shard-1-of-2",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('x');
  file.close();
  const RunSummary again = Run(config);
  CHECK(again.status == "done");  // from step 20
  CHECK(again.model_crc == first.model_crc);
}

TEST_CASE(
    "resume: where all checkpoints are damaged nothing begins anew and pushes them out, unless it is told "
    "to") {
  Directory saved;
  Config config = Rounds(2, 2, 4, saved.path());
  Run(config);
  const std::vector<std::string> names = saved.Names();
  REQUIRE(names.size() == 2);
  for (const std::string& name : names) {
    const std::string shard = saved.path() + "/" + name + "/shard-1-of-2";
    std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  }
  config.train.steps = 6;
  CHECK_THROWS_WITH_AS(
      Run(config), doctest::Contains("none of its checkpoints is complete (see above). Fetch one back, or"),
      UserError);
  CHECK(saved.Names() == names);
  config.checkpoint.resume = "never";
  CHECK(Run(config).global_step == 6);
}

TEST_CASE("resume: every_steps takes the first at its step, and the newest are kept") {
  Directory saved;
  Config config = Rounds(2, 2, 45, saved.path());
  config.checkpoint.every_steps = 40;
  config.checkpoint.keep = 2;
  Run(config);
  CHECK(saved.Names() == std::vector<std::string>{"step-000000045", "step-000000040"});
}

TEST_CASE("resume: another model in the directory is refused by the first tensor that differs") {
  Directory saved;
  Config config = Rounds(1, 1, 10, saved.path());
  Run(config);
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {5};
  CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("biases/b1"), UserError);
}

TEST_CASE("resume: more workers, and fewer, deal the rest of the data anew") {
  Directory saved;
  Config config = Rounds(2, 2, 30, saved.path());
  Run(config);
  config = Rounds(1, 3, 60, saved.path());
  const RunSummary more = Run(config);
  CHECK(more.global_step == 60);
  CHECK(more.examples == 30 * 2 * 50 + 30 * 3 * 50);
  config = Rounds(1, 1, 70, saved.path());
  CHECK(Run(config).examples == 30 * 2 * 50 + 30 * 3 * 50 + 10 * 50);
}

// Asks for a stop after a number of its worker's steps.
class StopAfter : public Hook {
 public:
  StopAfter(int64_t steps, StopRequest* stop) : steps_(steps), stop_(*stop) {}
  void AfterStep(const StepView& view, HookRequests*) override {
    if (view.local_step == steps_) stop_.Ask(SIGTERM);
  }

 private:
  const int64_t steps_;
  StopRequest& stop_;
};

TaskOptions StoppedAfter(int64_t steps, StopRequest* stop) {
  TaskOptions options;
  options.stop = stop;
  options.more_hooks = [steps, stop](TaskId) {
    HookList hooks;
    hooks.push_back(std::make_unique<StopAfter>(steps, stop));
    return hooks;
  };
  return options;
}

TEST_CASE("resume: a signal saves the run, and the rest of it ends with the same bits") {
  const RunSummary expected = Run(Rounds(2, 2, 3000, ""));
  Directory saved;
  StopRequest stop;
  const TaskOptions options = StoppedAfter(100, &stop);
  try {
    Run(Rounds(2, 2, 3000, saved.path()), options);
    FAIL("it did not stop");
  } catch (const RunStopped& stopped) {
    CHECK(stopped.code() == ExitCode::kTerminated);
    CHECK(stopped.summary().status == "stopped");
    CHECK(stopped.summary().checkpoint == saved.path() + "/" + saved.Names().front());
  }
  CHECK(Run(Rounds(1, 2, 3000, saved.path())).model_crc == expected.model_crc);
}

TEST_CASE("resume: without checkpoint.dir a signal says that nothing was saved") {
  StopRequest stop;
  const TaskOptions options = StoppedAfter(10, &stop);
  CHECK_THROWS_WITH_AS(Run(Rounds(2, 2, 100000, ""), options), doctest::Contains("nothing was saved"),
                       RunStopped);
}

}  // namespace
}  // namespace dtrain
