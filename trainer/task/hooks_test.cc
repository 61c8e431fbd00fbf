// Hooks in whole clusters: order of calls, slow workers, values that are not finite, runs that end early.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/testing/files.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr int64_t kForEver = 1000000000000;

// A cluster in this process; each task logs to a file.
struct LoggedRun {
  LoggedRun(const Config& config, const HookFactory& hooks) {
    LogOptions log;
    log.standard_error = false;
    log.directory = directory;
    TaskOptions options;
    options.more_hooks = hooks;
    summary = RunClusterInProcess(config, log, options);
  }
  ~LoggedRun() { std::filesystem::remove_all(directory); }
  // The log of `task`: "ps-0", "worker-1".
  std::string Log(const std::string& task) const {
    return testing::FileContent(directory + "/" + task + ".log");
  }

  const std::string directory = testing::NewDirectory();
  RunSummary summary;
};

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Records each call as "name:kind step".
class NotingHook : public Hook {
 public:
  NotingHook(std::string name, std::vector<std::string>* calls) : name_(std::move(name)), calls_(*calls) {}
  void Begin(const StepView& view) override { Note("begin", view); }
  void BeforeStep(const StepView& view, HookRequests*) override { Note("before", view); }
  void OnGradient(const StepView& view, const float*, HookRequests*) override { Note("gradient", view); }
  void AfterStep(const StepView& view, HookRequests*) override { Note("after", view); }
  void End(const StepView& view) override { Note("end", view); }

 private:
  void Note(const char* kind, const StepView& view) {
    calls_.push_back(fmt::format("{}:{} {}", name_, kind, view.local_step));
  }
  const std::string name_;
  std::vector<std::string>& calls_;
};

TEST_CASE("hooks: all are called in the order of the list, at each point of a step") {
  std::vector<std::string> calls;
  const LoggedRun run(LinearCluster(1, 1, 2), [&calls](TaskId) {
    HookList hooks;
    for (const char* name : {"a", "b"}) hooks.push_back(std::make_unique<NotingHook>(name, &calls));
    return hooks;
  });
  const std::vector<std::string> expected = {
      "a:begin 0",  "b:begin 0",                                                             //
      "a:before 1", "b:before 1", "a:gradient 1", "b:gradient 1", "a:after 1", "b:after 1",  //
      "a:before 2", "b:before 2", "a:gradient 2", "b:gradient 2", "a:after 2", "b:after 2",  //
      "a:end 2",    "b:end 2"};
  CHECK(calls == expected);
}

// Records what a hook finds after its worker's last step.
class LookingHook : public Hook {
 public:
  void BeforeStep(const StepView&, HookRequests* requests) override { requests->count_correct = true; }
  void AfterStep(const StepView& view, HookRequests*) override {
    CHECK(view.rows == 50);
    CHECK(view.loss > 0);
    CHECK(view.correct >= 0);
    CHECK(view.correct <= view.rows);
    CHECK(view.global_step == view.local_step);
    CHECK(view.source.batch_in_epoch() + 1 == view.local_step);
    CHECK(view.source.batches_per_epoch() == 80);
    CHECK(view.layout.size == 7850);
    CHECK(view.times.Of(StepPart::kCompute).count() == view.local_step - 1);
    const auto moved = [](float value) { return value != 0; };
    CHECK(std::any_of(view.weights, view.weights + view.layout.size, moved));
  }
};

TEST_CASE("hooks: they read loss, rows, those classified right, steps, position, times and weights") {
  const LoggedRun run(DigitsCluster(1, 1, 1), [](TaskId) {
    HookList hooks;
    hooks.push_back(std::make_unique<LookingHook>());
    return hooks;
  });
  CHECK(run.summary.global_step == 80);
}

// Slows its worker by 20 ms a step, and ends the run after kSteps steps.
class SlowHook : public Hook {
 public:
  static constexpr int64_t kSteps = 250;  // five seconds, more than twice failure.detect_s
  void AfterStep(const StepView& view, HookRequests* requests) override {
    std::this_thread::sleep_for(milliseconds(20));
    if (view.local_step >= kSteps) requests->end_run = "enough";
  }
};

TEST_CASE("slow worker: in sync all take its pace, it is they who wait, and it alone is called slow") {
  Config config = LinearCluster(2, 3, kForEver);
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.learning_rate = 1e-4;
  const LoggedRun run(config, [](TaskId task) {
    HookList hooks;
    if (task.index == 1) hooks.push_back(std::make_unique<SlowHook>());
    return hooks;
  });
  CHECK(run.summary.global_step == SlowHook::kSteps);
  REQUIRE(run.summary.workers.size() == 3);
  for (const size_t other : {0, 2}) {
    CHECK(run.summary.workers[other].wait.total_s > run.summary.workers[1].wait.total_s);
  }
  // The steps of 20 ms count as the time of that worker's hooks.
  CHECK(run.summary.workers[1].hooks.total_s >= 5);
  CHECK(run.summary.workers[1].hooks.p50_ms >= 20 * 0.984);
  const std::string chief = run.Log("worker-0"), ps = run.Log("ps-0");
  CAPTURE(ps);
  for (const char* worker : {"0", "1", "2"}) {
    CHECK(Count(chief, fmt::format("worker {}: waited ", worker)) == 1);
    CHECK(Count(run.Log(fmt::format("worker-{}", worker)), fmt::format("worker {}: waited ", worker)) == 1);
  }
  CHECK(Count(ps, "is slow: ") == 1);
  CHECK(Count(ps.substr(0, ps.find("is slow: ")), "warning: worker 1 (") == 1);
  CHECK(Count(ps, "worker 1 ends the run early: enough") == 1);
}

TEST_CASE("stop on nan: switched off, the run goes on to its end") {
  Config config = LinearCluster(1, 2, 1000);
  config.train.optimizer.learning_rate = 1e30;
  config.hooks.stop_on_nan = NonFinite::kApply;
  const LoggedRun run(config, {});
  CHECK(run.summary.status == "done");
  CHECK(run.summary.global_step == 1000);
  CHECK(Count(run.Log("ps-0"), "warning: at the end of the run ") == 1);
}

// An endless run that does not learn: only the first evaluation is better than the one before.
Config Vain(TrainMode mode, int ps, int workers) {
  Config config = DigitsCluster(ps, workers, 100000);
  config.train.mode = mode;
  config.train.optimizer.learning_rate = 0;
  config.data.train.rows = 1000;
  config.data.test.rows = 100;
  config.eval.every_steps = 5;
  config.eval.patience = 3;
  return config;
}

TEST_CASE(
    "patience: in sync the run ends at the step of the last evaluation, with the same bits for any "
    "ps") {
  std::string crc;
  for (const int ps : {1, 3}) {
    const LoggedRun run(Vain(TrainMode::kSync, ps, 3), {});
    CHECK(run.summary.status == "done");
    CHECK(run.summary.global_step == 20);
    CHECK(run.summary.deterministic);
    CHECK(run.summary.test.loss.has_value());
    if (crc.empty()) crc = *run.summary.model_crc;
    CHECK(*run.summary.model_crc == crc);
    CHECK(Count(run.Log("worker-0"), "evaluation at global step ") == 4);
    CHECK(
        Count(
            run.Log("ps-0"),
            "the run ends early: 3 evaluations in a row without a smaller loss (eval.patience); the best was "
            "2.30259 at global step 5") == 1);
  }
}

TEST_CASE("patience: in async and ssp every step that was granted is taken or given back, and the run ends") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    for (const int in_flight : {1, 3}) {
      if (mode == TrainMode::kSsp && in_flight > 1) continue;
      Config config = Vain(mode, 2, 3);
      config.train.in_flight = in_flight;
      const LoggedRun run(config, {});
      CHECK(run.summary.status == "done");
      int64_t all = 0;
      for (const int64_t steps : run.summary.local_steps) all += steps;
      CHECK(run.summary.global_step == all);
      int64_t evaluations = 0;  // of the lowest worker, or of others where that is slow
      for (const char* const worker : {"worker-0", "worker-1", "worker-2"}) {
        evaluations += Count(run.Log(worker), "evaluation at global step ");
      }
      CHECK(evaluations == 4);
    }
  }
}

TEST_CASE("max secs: a run ends when its time has passed, in every mode, done and evaluated, and says why") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    CAPTURE(static_cast<int>(mode));
    Config config = DigitsCluster(2, 2, 1);
    config.train.epochs.reset();
    config.train.mode = mode;
    config.train.max_secs = 0.3;
    config.data.train.rows = 500;
    config.data.test.rows = 100;
    const TimePoint begun = Clock::now();
    const LoggedRun run(config, {});
    CHECK(SecondsBetween(begun, Clock::now()) >= 0.3);
    CHECK(run.summary.status == "done");
    CHECK(run.summary.global_step > 0);
    CHECK(run.summary.test.accuracy.has_value());
    CHECK(Count(run.Log("ps-0"), "the run ends: 0.3 s of training have passed (train.max_secs)") == 1);
  }
}

TEST_CASE("max secs: a run that ends before has never heard of it") {
  Config config = LinearCluster(1, 2, 50);
  config.train.max_secs = 1000;
  const LoggedRun run(config, {});
  CHECK(run.summary.global_step == 50);
  CHECK(Count(run.Log("ps-0"), "max_secs") == 0);
}

TEST_CASE("patience: a run that gets better is not ended, and evaluating changes nothing in it") {
  std::string crc;
  for (const bool evaluated : {false, true}) {
    Config config = DigitsCluster(1, 2, 2);
    config.train.mode = TrainMode::kSync;
    if (evaluated) {
      config.eval.every_steps = 20;
      config.eval.patience = 1;
    }
    const LoggedRun run(config, {});
    CHECK(run.summary.global_step == 80);
    CHECK(Count(run.Log("worker-0"), "evaluation at global step ") == (evaluated ? 4 : 0));
    if (crc.empty()) crc = *run.summary.model_crc;
    CHECK(*run.summary.model_crc == crc);
  }
}

}  // namespace
}  // namespace dtrain
