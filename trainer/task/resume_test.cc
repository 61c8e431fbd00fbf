// Whole clusters that save, stop and go on: a run in two parts equals the run in one.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
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
  config->train.optimizer.learning_rate =
      kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw ? 0.01 : 0.1;
}

TEST_CASE("resume: 100 steps are 50 and 50 more, for each optimizer and any number of ps") {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad, OptimizerKind::kRmsprop,
        OptimizerKind::kAdam, OptimizerKind::kAdamw, OptimizerKind::kFtrl}) {
    Config whole = Rounds(1, 2, 100, "");
    Use(kind, &whole);
    const RunSummary expected = Run(whole);
    Directory saved;
    Config first = Rounds(2, 2, 50, saved.path());
    Use(kind, &first);
    CHECK(Run(first).model_crc != expected.model_crc);
    const bool odd = static_cast<int>(kind) % 2 == 1;  // two of the numbers for each
    for (const int ps : {odd ? 1 : 2, odd ? 3 : 5}) {
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

TEST_CASE("resume: rounds that end epochs in step go on with the same bits, wherever they stopped") {
  const auto uneven = [](int ps, int64_t steps, const std::string& directory) {
    Config config = Rounds(ps, 2, steps, directory);
    config.data.train.rows = 1010;  // 21 batches, the last one of 10: 11 steps an epoch
    Use(OptimizerKind::kMomentum, &config);
    return config;
  };
  const RunSummary expected = Run(uneven(1, 100, ""));
  CHECK(expected.local_steps == std::vector<int64_t>{100, 100});
  for (const int64_t stopped_at : {50, 54, 55}) {  // in an epoch, before its last round, behind it
    CAPTURE(stopped_at);
    Directory saved;
    Run(uneven(1, stopped_at, saved.path()));
    const RunSummary resumed = Run(uneven(3, 100, saved.path()));
    CHECK(resumed.model_crc == expected.model_crc);
    CHECK(resumed.local_steps == expected.local_steps);
    CHECK(resumed.examples == expected.examples);
    CHECK(resumed.deterministic);
  }
}

// Faults of data that workers meet at local steps of theirs.
TaskOptions WithFaults(const std::vector<std::pair<int, int64_t>>& faults) {
  class Meets : public Hook {
   public:
    Meets(int worker, int64_t step) : worker_(worker), step_(step) {}
    void BeforeStep(const StepView& view, HookRequests*) override {
      if (view.local_step == step_) throw UserError("table.csv:{}:2: bad. Correct it.", worker_);
    }

   private:
    const int worker_;
    const int64_t step_;
  };
  TaskOptions options;
  options.more_hooks = [faults](TaskId task) {
    HookList hooks;
    for (const auto& [worker, step] : faults) {
      if (worker == task.index) hooks.push_back(std::make_unique<Meets>(worker, step));
    }
    return hooks;
  };
  return options;
}

// What a run says that ends by a fault of its data.
std::string FaultOf(const Config& config, const TaskOptions& options) {
  try {
    Run(config, options);
  } catch (const UserError& fault) {
    return fault.what();
  }
  return "";
}

TEST_CASE("resume: a run that meets a fault in its data is saved, and goes on with the bits of one in one") {
  for (const bool keeps_best : {false, true}) {
    for (const int workers : {1, 3}) {
      CAPTURE(workers);
      Config config = Rounds(2, workers, 100, "");
      config.eval.every_steps = keeps_best ? 7 : 0;
      config.eval.patience = keeps_best ? 50 : 0;
      const RunSummary whole = Run(config);
      Directory saved;
      config.checkpoint.dir = saved.path();
      config.eval.keep_best = keeps_best;
      const int last = workers - 1;
      CHECK(FaultOf(config, WithFaults({{last, 31}})) ==
            fmt::format("table.csv:{}:2: bad. Correct it. The run stopped at global step 30; the newest "
                        "checkpoint is {}/step-000000030. Start it again to go on from there.",
                        last, saved.path()));
      CHECK(saved.Names().front() == "step-000000030");
      // It is not mended.
      const std::string again = FaultOf(config, WithFaults({{last, 31}}));
      CHECK(again.find("at global step 30; the newest checkpoint is") != std::string::npos);
      const RunSummary resumed = Run(config);
      CHECK(resumed.model_crc == whole.model_crc);
      CHECK(resumed.deterministic);
    }
  }
}

// 1,000 rows of a table, with this text in row 900.
void WriteRows(const std::string& path, const char* row_900) {
  std::ofstream file(path);
  file << "y,x\n";
  for (int row = 1; row <= 1000; ++row) {
    row == 900 ? file << "0," << row_900 << "\n" : file << row % 2 << "," << row % 7 << "\n";
  }
}

TEST_CASE("resume: a row of a file that is mended in its place changes no bit") {
  for (const int workers : {1, 3}) {
    CAPTURE(workers);
    Directory saved;
    const std::string table = testing::NewDirectory() + "/table.csv";
    Config config = LinearCluster(2, workers, 0);
    config.train.steps.reset();
    config.train.epochs = 2;
    config.train.batch_size = 10;
    config.train.mode = TrainMode::kSync;
    config.failure.worker_lost = WorkerLost::kWait;
    config.data.train = {};
    config.data.train.format = DataFormat::kCsv;
    config.data.train.path = {table};
    config.data.train.label = "y";
    config.data.cache = DataCache::kNone;
    config.data.shuffle_rows = 100;
    WriteRows(table, "3");
    const RunSummary whole = Run(config);
    config.checkpoint.dir = saved.path();
    WriteRows(table, "oops");
    const std::string fault = FaultOf(config, {});
    CHECK(fault.find(table + ":901:3: x = oops; must be a number.") == 0);
    CHECK(fault.find("The run stopped at global step ") != std::string::npos);
    WriteRows(table, "3");
    CHECK(Run(config).model_crc == whole.model_crc);
  }
}

TEST_CASE(
    "resume: async and ssp are saved at a fault too, with each row once, and one fault is told of two") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    Directory saved;
    Config config = DigitsCluster(2, 3, 2);
    config.train.mode = mode;
    config.train.in_flight = mode == TrainMode::kAsync ? 3 : 1;
    config.checkpoint.dir = saved.path();
    const std::string fault = FaultOf(config, WithFaults({{1, 20}, {2, 20}}));
    CHECK(fault.find(":2: bad. Correct it. The run stopped at global step ") != std::string::npos);
    CHECK(fault.find(":2: bad", fault.find(":2: bad") + 1) == std::string::npos);
    const RunSummary resumed = Run(config);
    CHECK(resumed.status == "done");
    CHECK(resumed.examples == 2 * 4000);
  }
}

TEST_CASE(
    "resume: without checkpoint.dir a fault in the data ends the run for all, and says that it is lost") {
  CHECK(FaultOf(Rounds(1, 3, 100, ""), WithFaults({{1, 11}})) ==
        "table.csv:1:2: bad. Correct it. The run stopped at global step 10; nothing was saved: there is no "
        "checkpoint.dir.");
}

TEST_CASE("resume: progressive loss goes on with the sums of the checkpoint, to the bit") {
  const auto rounds = [](int64_t steps, const std::string& directory) {
    Config config = Rounds(1, 2, steps, directory);
    config.data.train.rows = 1010;  // the last batch of an epoch has 10
    config.hooks.progressive = true;
    return config;
  };
  const RunSummary whole = Run(rounds(100, ""));
  REQUIRE(whole.progressive_loss);
  Directory saved;
  // Rows are known better later.
  CHECK(Run(rounds(50, saved.path())).progressive_loss > whole.progressive_loss);
  CHECK(Run(rounds(100, saved.path())).progressive_loss == whole.progressive_loss);
  CHECK_FALSE(Run(Rounds(1, 2, 10, "")).progressive_loss);
}

TEST_CASE(
    "resume: decay_steps: auto is all updates of the run, whatever batches, workers and mode it had before") {
  const auto run = [](const Directory& directory, int workers, int64_t batch, int64_t decay_steps) {
    Config config = Rounds(2, workers, 1, directory.path());
    if (workers == 1) config.train.mode = TrainMode::kAsync;
    config.train.steps.reset();
    config.train.epochs = 2;
    config.train.batch_size = batch;
    config.train.optimizer.schedule = {ScheduleKind::kCosine, decay_steps, 1, 0, 3};
    return Run(config);
  };
  for (const auto& [workers, batch] : {std::pair(2, 50), {2, 80}, {1, 50}, {3, 100}}) {
    CAPTURE(workers);
    CAPTURE(batch);
    Directory saved, copy;
    Config first = Rounds(2, 2, 13, saved.path());
    first.train.optimizer.schedule = {ScheduleKind::kCosine, kAutoDecay, 1, 0, 3};
    first.train.epochs = 2;
    Run(first);
    std::filesystem::copy(saved.path(), copy.path(), std::filesystem::copy_options::recursive);
    const RunSummary resumed = run(saved, workers, batch, kAutoDecay);
    CHECK(resumed.global_step > 13);
    CHECK(resumed.model_crc == run(copy, workers, batch, resumed.global_step - 3).model_crc);
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
  CHECK(again.test.accuracy == first.test.accuracy);
  CHECK(saved.Names() == names);
}

TEST_CASE("resume: more workers, and fewer, deal the rest of the data anew") {
  Directory saved;
  Config config = Rounds(2, 2, 30, saved.path());
  Run(config);
  config = Rounds(1, 3, 60, saved.path());
  const RunSummary more = Run(config);
  CHECK(more.global_step == 60);
  // 20 batches of the epoch were left, and the seventh round of three workers had two of them.
  const int64_t examples = 30 * 2 * 50 + (30 * 3 - 1) * 50;
  CHECK(more.examples == examples);
  config = Rounds(1, 1, 70, saved.path());
  CHECK(Run(config).examples == examples + 10 * 50);
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

constexpr int kRows = 40;

// Rows with two features of very different size; the label is whether the row is in the upper half.
std::string Rows() {
  std::string rows = "y,a,b\n";
  for (int i = 0; i < kRows; ++i) rows += fmt::format("{},{},{}\n", i < kRows / 2 ? 0 : 1, i % 7, 100 * i);
  return rows;
}

// A job on them. data.scale stays that of the checkpoint for every worker, since the weights mean nothing to
// features with another scale.
class Job {
 public:
  Job() { Write("train.csv", Rows()), Write("test.csv", Rows()); }
  ~Job() { std::filesystem::remove_all(directory_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Adds a row that changes mean and deviation of both features a lot.
  void AppendFarRow() { Write("train.csv", Rows() + "1,70000,-9000000\n"); }

  Config At(int64_t steps, double learning_rate, Split split) const {
    Config config = LinearCluster(2, 2, steps);
    config.model.kind = ModelKind::kLogistic;
    config.model.inputs = 2;
    config.data.train.format = config.data.test.format = DataFormat::kCsv;
    config.data.train.path = {directory_ + "/train.csv"};
    config.data.test.path = {directory_ + "/test.csv"};
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

  Manifest Newest(const std::string& directory = "") const {
    const CheckpointDirectory saved(directory.empty() ? Path("ckpt") : directory);
    const Manifest manifest = ReadManifest(saved.path() + "/" + saved.List().front().name);
    REQUIRE(manifest.inputs.has_value());
    return manifest;
  }
  FittedScale SavedScale() const {
    const FittedScale scale = Newest().inputs->scale;
    REQUIRE(scale.shift.size() == 2);
    return scale;
  }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name)) << content;
  }

 private:
  const std::string directory_ = testing::NewDirectory();
};

TEST_CASE("resume: every worker scales as the checkpoint has it, whatever the rows are now") {
  Job job;
  const RunSummary first = Run(job.At(200, 0.5, Split::kShard));
  REQUIRE(first.test.loss.has_value());
  CHECK(*first.test.accuracy > 0.9);
  const FittedScale scale = job.SavedScale();
  job.AppendFarRow();
  // Steps that change nothing: test rows depend on the scale alone.
  const RunSummary second = Run(job.At(202, 1e-30, Split::kShard));
  CHECK(second.global_step == 202);
  CHECK(*second.test.loss == doctest::Approx(*first.test.loss).epsilon(1e-6));
  CHECK(second.worker_accuracy.size() == 2);
  for (const auto& accuracy : second.worker_accuracy) {
    REQUIRE(accuracy.has_value());
    CHECK(*accuracy == *first.test.accuracy);
  }
  CHECK(job.SavedScale() == scale);
}

// A table of a plan, a number with gaps and a label that the plan tells. `name` says how each plan is written
// on that day.
template <typename Name>
std::string Plans(int first, Name&& name) {
  std::string rows = "plan,a,y\n";
  for (int i = first; i < first + 60; ++i) {
    const char plan = "abc"[i % 3];
    rows +=
        fmt::format("{},{},{}\n", name(plan), i % 5 == 0 ? "" : std::to_string(i % 7), plan == 'b' ? 1 : 0);
  }
  return rows;
}
std::string SameName(char plan) { return std::string(1, plan); }

TEST_CASE("resume, start_from: rows are read with the checkpoint's categories, fill values and scale") {
  struct Day {
    const char* what;
    std::string rows;
    int64_t unseen;
  };
  const std::vector<Day> days = {
      {"a new one", Plans(0, SameName) + "d,3,0\nd,3,1\ne,,0\n", 3},
      {"one is missing", Plans(0, [](char plan) { return plan == 'c' ? "a" : std::string(1, plan); }), 0},
      {"renamed", Plans(0, [](char plan) { return plan == 'b' ? "B" : std::string(1, plan); }), 20},
      {"other gaps and values", Plans(0, SameName) + "a,-90000,0\n,,1\n", 1}};
  for (const Split split : {Split::kShard, Split::kFeed}) {
    for (const bool begins : {false, true}) {
      Job job;
      const auto config = [&](int64_t steps, double rate) {
        Config config = job.At(steps, rate, split);
        config.model.inputs.reset();
        config.data.categories = {"plan"};
        config.data.missing = MissingValues::kIndicator;
        if (split == Split::kFeed) config.eval.by = EvalBy::kChief;  // as a config file must have it
        return config;
      };
      job.Write("test.csv", Plans(60, SameName));
      job.Write("train.csv", Plans(0, SameName));
      const RunSummary first = Run(config(100, 0.5));
      REQUIRE(first.test.accuracy == 1);
      const Manifest saved = job.Newest();
      int64_t steps = begins ? 0 : 100;
      for (const Day& day : days) {
        CAPTURE(day.what);
        CAPTURE(begins);
        job.Write("train.csv", day.rows);
        Config next = config(steps += 2, 1e-30);
        if (begins) {
          next.checkpoint.start_from = next.checkpoint.dir;
          next.checkpoint.dir = job.Path(fmt::format("of-{}", steps));
        }
        const RunSummary second = Run(next);
        CHECK(second.global_step == steps);
        CHECK(*second.test.loss == doctest::Approx(*first.test.loss).epsilon(1e-6));
        CHECK(second.workers.at(0).unseen_categories == day.unseen);
        const Manifest now = job.Newest(next.checkpoint.dir);
        CHECK(now.inputs->columns == saved.inputs->columns);
        CHECK(now.inputs->features == saved.inputs->features);
        CHECK(now.inputs->scale == saved.inputs->scale);
      }
    }
  }
}

TEST_CASE("resume: the last features and classes may be missing in the rows of now") {
  const Job job;
  Config config = job.At(20, 0.1, Split::kShard);
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs.reset();
  config.model.outputs.reset();
  config.data.scale = FeatureScale::kNone;
  config.data.test = DataSourceConfig();
  config.data.train.format = DataFormat::kLibsvm;
  const auto write = [&](int classes, int features) {
    std::string rows;
    for (int i = 0; i < 60; ++i) rows += fmt::format("{} {}:1\n", i % classes, i % features + 1);
    job.Write("train.csv", rows);
  };
  write(3, 6);
  Run(config);
  write(2, 4);
  config.train.steps = 22;
  CHECK(Run(config).global_step == 22);
  write(3, 7);
  config.train.steps = 24;
  CHECK_THROWS_WITH_AS(Run(config), doctest::Contains("another model: "), UserError);
}

TEST_CASE("resume: columns of other names are another model, and are no fit of the checkpoint") {
  Job job;
  Config config = job.At(4, 0.5, Split::kShard);
  config.model.inputs.reset();
  config.data.categories = {"plan"};
  config.data.test = DataSourceConfig();
  config.data.missing = MissingValues::kMean;
  job.Write("train.csv", Plans(0, SameName));
  Run(config);
  config.train.steps = 6;
  const auto told = [&](const std::string& rows) -> std::string {
    job.Write("train.csv", rows);
    try {
      Run(config);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string other_name = std::string(Plans(0, SameName)).replace(0, 6, "plan,b");
  CHECK(
      told(other_name).find("another model: feature 1 is \"a\" in the checkpoint and \"b\" in data.train") !=
      std::string::npos);
  std::string one_more;
  std::istringstream rows(Plans(0, SameName));
  for (std::string line; std::getline(rows, line);)
    one_more += (one_more.empty() ? "id," : "1,") + line + '\n';
  CHECK(told(one_more).find(
            "another model: feature 0 is \"plan\" in the checkpoint and \"id\" in data.train") !=
        std::string::npos);
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

}  // namespace
}  // namespace dtrain
