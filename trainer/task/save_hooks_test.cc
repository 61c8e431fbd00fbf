// Checkpoints that hooks request, in whole clusters: at a certain step, and the best one (eval.keep_best).
#include <doctest/doctest.h>

#include <cmath>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain::testing {
namespace {

using Names = std::vector<std::string>;

RunSummary RunWith(HookFactory hooks, const Config& config) {
  TaskOptions options;
  options.more_hooks = std::move(hooks);
  return Run(config, options);
}

Config Saved(Config config) {
  config.checkpoint.dir = NewDirectory();
  config.checkpoint.every_secs = 0;
  return config;
}

// A hook of worker `index` that requests a checkpoint at local step 7.
HookFactory SavesAtSeven(int index) {
  class Saves : public Hook {
    void AfterStep(const StepView& view, HookRequests* requests) override {
      requests->save = view.local_step == 7;
    }
  };
  return [index](TaskId task) {
    HookList hooks;
    if (task.index == index) hooks.push_back(std::make_unique<Saves>());
    return hooks;
  };
}

TEST_CASE("save: a hook that asks for a checkpoint after local step 7 gives one of that step") {
  const Config config = Saved(LinearCluster(1, 1, 20));
  RunWith(SavesAtSeven(0), config);
  CHECK(NamesIn(config.checkpoint.dir) == Names{"step-000000000", "step-000000007", "step-000000020"});
}

TEST_CASE("save: in sync any worker's is of the weights that it had, as a run that ends there has them") {
  Config config = Saved(LinearCluster(2, 2, 20));
  config.train.mode = TrainMode::kSync;
  RunWith(SavesAtSeven(1), config);
  const std::string path = config.checkpoint.dir + "/step-000000007";
  REQUIRE(std::filesystem::exists(path));
  config.train.steps = 7;
  const RunSummary seven = Run(Saved(config));
  CheckpointReader checkpoint(path);
  for (const auto& [name, values] : seven.weights) {
    float value = 0;
    checkpoint.Read(name, CheckpointReader::kWeights, 0, 1, &value);
    CHECK(value == values.at(0));
  }
  CHECK(std::isnan(checkpoint.manifest().loss));
}

TEST_CASE("save: a hook that asks without checkpoint.dir gets none, and the run goes on") {
  CHECK(RunWith(SavesAtSeven(0), LinearCluster(1, 2, 20)).global_step == 20);
}

// A run that gets better with every evaluation; the last one is at its end, step 80.
Config Best() {
  Config config = Saved(DigitsCluster(2, 2, 2));
  config.train.mode = TrainMode::kSync;
  config.eval.every_steps = 20;
  config.eval.keep_best = true;
  config.checkpoint.keep = 1;
  return config;
}

TEST_CASE("keep best: the checkpoint of the smallest loss has its figures and its weights, and is named") {
  const Config config = Best();
  const RunSummary run = Run(config);
  const CheckpointDirectory directory(config.checkpoint.dir);
  CHECK(directory.ReadBest() == "step-000000080");
  const Manifest manifest = ReadManifest(directory.PathOf("step-000000080"));
  CHECK(manifest.loss == run.test.loss);
  CHECK(manifest.accuracy == run.test.accuracy);
  CHECK(NamesIn(directory.path()) == Names{"best", "step-000000080"});
}

TEST_CASE("keep best: a run that goes on knows the best loss so far, and the best stays beside the newest") {
  Config config = Best();
  Run(config);
  config.train.epochs = 3;
  config.train.optimizer.learning_rate = 0;  // no evaluation is better
  CHECK(Run(config).global_step == 120);
  const CheckpointDirectory directory(config.checkpoint.dir);
  CHECK(directory.ReadBest() == "step-000000080");
  CHECK(NamesIn(directory.path()) == Names{"best", "step-000000080", "step-000000120"});
}

TEST_CASE("keep best: a run that begins anew forgets the best one of the run before") {
  Config config = Best();
  Run(config);
  config.checkpoint.resume = "never";
  config.train.optimizer.learning_rate = 0;  // only the first evaluation is better than none
  CHECK(Run(config).global_step == 80);
  const CheckpointDirectory directory(config.checkpoint.dir);
  const std::optional<std::string> best = directory.ReadBest();
  REQUIRE(best.has_value());
  CHECK(ReadManifest(directory.PathOf(*best)).loss == doctest::Approx(2.302585));
}

TEST_CASE("keep best: in async with gradients in flight the run ends at its step, and one is the best") {
  Config config = Best();
  config.train.mode = TrainMode::kAsync;
  config.train.in_flight = 3;
  CHECK(Run(config).global_step == 160);
  CHECK(std::isfinite(CheckpointDirectory(config.checkpoint.dir).ReadBestScore(EvalMetric::kLoss)));
}

}  // namespace
}  // namespace dtrain::testing
