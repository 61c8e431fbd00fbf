#include "trainer/hooks/hooks.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>

#include "base/error.h"
#include "trainer/hooks/hook_test_util.h"
#include "trainer/summary/event_reader.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// hooks.stop_on_nan: true.
const HooksConfig& StopConfig() {
  static const HooksConfig config;
  return config;
}

Logger& NoLog() {
  static FileLog log;
  return log.log();
}

// The error that ends the run at local step 7 with this loss and gradient; empty: it goes on.
std::string Verdict(FakeStep& step, float loss, const std::vector<float>& gradient) {
  StopOnNan hook(StopConfig(), NoLog(), [] { return ""; });
  step.view.local_step = 5;
  hook.Begin(step.view);
  step.view.local_step = 7;
  step.view.loss = loss;
  HookRequests requests;
  try {
    hook.OnGradient(step.view, gradient.data(), &requests);
  } catch (const Failure& failure) {
    CHECK(failure.code() == ExitCode::kDiverged);
    const std::string text = failure.what();
    return text.substr(0, text.find(": the run has diverged"));
  }
  return "";
}

TEST_CASE("stop on nan: finite values of any size pass") {
  FakeStep step;
  CHECK(Verdict(step, 3e38f, {3e38f, -3e38f, 0, 1e-45f, 1, 2}) == "");
}

TEST_CASE("stop on nan: worker, local step, tensor and place of the gradient's first value are named") {
  FakeStep step;
  CHECK(Verdict(step, 0.5f, {1, 2, 3, 4, 5, -kInfinite}) ==
        "worker 1, local step 7: the loss is 0.5, and in its gradient weights/W[1, 2] is -inf");
  CHECK(Verdict(step, kNan, {kNan, 2, 3, 4, 5, kInfinite}) ==
        "worker 1, local step 7: the loss is nan, and in its gradient weights/W[0, 0] is nan");
}

TEST_CASE("stop on nan: where only the loss is not finite the weights say why") {
  FakeStep step;
  step.weights[4] = -2e30f;
  CHECK(Verdict(step, kInfinite, {1, 2, 3, 4, 5, 6}) ==
        "worker 1, local step 7: the loss is inf, and of its weights weights/W[1, 1] is -2e+30, the largest");
  step.weights[1] = kNan;
  CHECK(Verdict(step, kInfinite, {1, 2, 3, 4, 5, 6}) ==
        "worker 1, local step 7: the loss is inf, and of its weights weights/W[0, 1] is nan");
}

TEST_CASE("stop on nan: weights that are not finite before the first step are told as such") {
  StopOnNan hook(StopConfig(), NoLog(), [] { return ""; });
  FakeStep step;
  step.view.local_step = 31;
  hook.Begin(step.view);  // from a checkpoint
  step.view.local_step = 32;
  step.view.loss = kNan;
  step.weights[1] = kNan;
  const std::vector<float> gradient(6, kNan);
  HookRequests requests;
  try {
    hook.OnGradient(step.view, gradient.data(), &requests);
    FAIL("it passed");
  } catch (const Failure& failure) {
    CHECK(failure.code() == ExitCode::kDiverged);
    CHECK(std::string(failure.what()).find("worker 1 began with weights of which weights/W[0, 1] is nan: ") ==
          0);
  }
}

TEST_CASE("stop on nan: where features are large and not scaled the scale is the first thing to try") {
  FakeStep step;
  const auto advice = [&](const std::string& large_feature) {
    StopOnNan hook(StopConfig(), NoLog(), [&] { return large_feature; });
    hook.Begin(step.view);
    step.view.local_step = 7;
    step.view.loss = kNan;
    HookRequests requests;
    try {
      hook.OnGradient(step.view, std::vector<float>(6, kNan).data(), &requests);
    } catch (const Failure& failure) {
      const std::string text = failure.what();
      return text.substr(text.find("the run has diverged"));
    }
    return std::string();
  };
  CHECK(advice("") ==
        "the run has diverged. Try a smaller train.optimizer.learning_rate, or check the data.");
  CHECK(advice("Feature a is as large as 99, and data.scale is none") ==
        "the run has diverged. Feature a is as large as 99, and data.scale is none. Try data.scale: standard "
        "first, then a smaller train.optimizer.learning_rate.");
}

// A worker with hooks.stop_on_nan: skip.
struct Skipping {
  explicit Skipping(int64_t limit) {
    config.stop_on_nan = NonFinite::kSkip;
    config.skip_limit = limit;
    hook.Begin(step.view);
  }
  // Takes a step. Returns whether its gradient is left out.
  bool Skips(bool finite) {
    ++step.view.local_step;
    step.view.loss = finite ? 1 : kNan;
    HookRequests requests;
    hook.OnGradient(step.view, std::vector<float>(6, 1).data(), &requests);
    return requests.skip;
  }

  FakeStep step;
  FileLog log;
  HooksConfig config;
  StopOnNan hook{config, log.log(), [] { return ""; }};
};

TEST_CASE("skip: a gradient that is not finite is left out, and the run goes on with the next") {
  Skipping worker(3);
  CHECK(!worker.Skips(true));
  CHECK(worker.Skips(false));
  CHECK(!worker.Skips(true));
}

TEST_CASE("skip: those of the limit in a row are left out, and the next ends the run with the last cause") {
  Skipping worker(2);
  for (int i = 0; i < 5; ++i) {  // never three in a row
    CHECK(worker.Skips(false));
    CHECK(worker.Skips(false));
    CHECK(!worker.Skips(true));
  }
  CHECK(worker.Skips(false));
  CHECK(worker.Skips(false));
  CHECK_THROWS_WITH_AS(
      worker.Skips(false),
      "worker 1, local step 18: 2 gradients in a row were left out (hooks.skip_limit = 2), and the next: the "
      "loss is nan, and of its weights weights/W[0, 0] is 1, the largest: the run has diverged. Try a "
      "smaller "
      "train.optimizer.learning_rate, or check the data.",
      Failure);
}

TEST_CASE("skip: a run that goes back counts those in a row anew, and begins with finite weights") {
  Skipping worker(1);
  CHECK(worker.Skips(false));
  worker.hook.Begin(worker.step.view);
  CHECK(worker.Skips(false));
  worker.hook.Begin(worker.step.view);
  worker.step.weights[2] = kInfinite;
  CHECK_THROWS_WITH_AS(worker.Skips(false), doctest::Contains("worker 1 began with weights of which"),
                       Failure);
}

TEST_CASE("skip: the 1st, 10th and 100th are told with their place, and the number of all at the end") {
  Skipping worker(1000);
  worker.step.source.epoch_ = 2;
  worker.step.source.batch_ = 6;
  for (int i = 0; i < 150; ++i) CHECK(worker.Skips(false));
  worker.hook.End(worker.step.view);
  const std::vector<std::string> lines = worker.log.Lines();
  REQUIRE(lines.size() == 4);
  const auto tells = [&](size_t line, const char* text) {
    CHECK(lines[line].find(text) != std::string::npos);
  };
  tells(0,
        "warning: local step 1 (epoch 3, batch 7): the loss is nan, and of its weights weights/W[0, 0] is 1, "
        "the largest: nothing of this gradient is sent, 1 gradient so far (hooks.stop_on_nan: skip)");
  tells(1, "local step 10 (epoch 3, batch 7)");
  tells(2, ", 100 gradients so far");
  tells(3, "150 gradients were not finite and left out");
}

struct CurveOf {
  std::vector<int64_t> steps;
  std::vector<double> values;
};

// A worker's curve, which gets a point at every third step of `losses`, of so many rows each, and at the end.
// `delay`: so many steps after its own a step is applied. `ends`: else the hook is destroyed without End().
CurveOf Curve(const char* tag, const std::vector<float>& losses, const std::vector<int64_t>& rows,
              const std::vector<std::optional<double>>& weights, int64_t delay = 0, bool ends = true) {
  Config config = DigitsCluster(1, 1, 1);
  config.summary.dir = testing::NewDirectory();
  config.summary.every_steps = 3;
  config.summary.every_secs = 0;
  FileLog file;
  ExitHooks exit_hooks;
  {
    const auto summary = WorkerSummary::Open(config, 1, "cpu:0", Layout(), exit_hooks, file.log());
    Staleness staleness(1);
    SummaryHook hook(*summary, staleness, delay + 1);
    FakeStep step;
    HookRequests requests;
    hook.Begin(step.view);
    for (size_t i = 0; i < losses.size(); ++i) {
      step.view.local_step = static_cast<int64_t>(i) + 1;
      step.view.global_step = std::max<int64_t>(0, step.view.local_step - delay);
      step.view.loss = losses[i];
      step.view.rows = rows[i];
      step.view.weight = weights[i];
      hook.BeforeStep(step.view, &requests);
      step.view.correct = requests.count_correct ? 1 : 0;
      hook.AfterStep(step.view, &requests);
    }
    step.view.global_step = step.view.local_step;
    if (ends) hook.End(step.view);
  }
  CurveOf curve;
  for (const auto& entry : std::filesystem::directory_iterator(config.summary.dir + "/worker-1")) {
    ReadCurves(entry.path().string(), [&](const std::string& found, const CurvePoint& point) {
      if (found != tag) return;
      curve.steps.push_back(point.step);
      curve.values.push_back(point.value);
    });
  }
  return curve;
}

TEST_CASE("summary hook: a point is the mean over all rows since the last one, by their weights") {
  const std::vector<float> losses = {1, 4, 0, 6, 2, 3};
  const std::vector<int64_t> rows = {4, 2, 0, 1, 1, 2};
  const std::vector<std::optional<double>> none(6);
  CHECK(Curve("loss", losses, rows, none).values == std::vector<double>{2, 3.5});
  CHECK(Curve("accuracy", losses, rows, none).values == std::vector<double>{0.5, 0.75});
  CHECK(Curve("loss", losses, rows, {2, 4, 0, 1, 1, 2}).values == std::vector<double>{3, 3.5});
}

TEST_CASE("summary hook: the last step has a point, once, however the run ends") {
  const std::vector<std::optional<double>> none(8);
  const auto check = [&](size_t count, int64_t delay, bool ends, const std::vector<int64_t>& steps,
                         const std::vector<double>& values) {
    const std::vector<float> losses = {1, 2, 3, 4, 5, 6, 7, 8};
    const CurveOf curve = Curve("loss", {losses.begin(), losses.begin() + static_cast<int64_t>(count)},
                                std::vector<int64_t>(count, 1), none, delay, ends);
    CHECK(curve.steps == steps);
    CHECK(curve.values == values);
  };
  check(2, 0, true, {2}, {1.5});
  check(6, 0, true, {3, 6}, {2, 5});
  check(8, 0, true, {3, 6, 8}, {2, 5, 7.5});
  check(8, 0, false, {3, 6, 8}, {2, 5, 7.5});  // a failure
  // What is under way when a point is due is for the next one.
  check(2, 3, true, {2}, {1.5});
  check(6, 1, true, {2, 5, 6}, {1.5, 4, 6});
  check(8, 2, true, {1, 4, 8}, {1.5, 4, 7});
}

TEST_CASE("step counter: a line every so many local steps, with both paces") {
  FileLog file;
  StepCounter counter(4, file.log());
  FakeStep step;
  HookRequests requests;
  counter.Begin(step.view);
  for (int64_t i = 1; i <= 11; ++i) {
    step.view.local_step = i;
    step.view.global_step = 3 * i;
    counter.AfterStep(step.view, &requests);
  }
  const std::vector<std::string> lines = file.Lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("global step 12, local step 4: ") != std::string::npos);
  CHECK(lines[1].find("global step 24, local step 8: ") != std::string::npos);
  // Three global steps per step of this worker.
  const size_t global = lines[1].find("local step 8: ") + 14, local = lines[1].find("global steps/s, ") + 16;
  CHECK(std::stod(lines[1].substr(global)) / std::stod(lines[1].substr(local)) ==
        doctest::Approx(3).epsilon(0.01));
}

}  // namespace
}  // namespace dtrain
