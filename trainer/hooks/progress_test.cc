#include "trainer/hooks/progress.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "trainer/config/run_config.h"
#include "trainer/hooks/hook_test_util.h"

namespace dtrain {
namespace {

std::vector<std::string> RowsOf(HooksConfig hooks, int64_t steps, bool leased = false) {
  FileLog file;
  Progress progress(hooks, file.log(), leased);
  FakeStep step;
  HookRequests requests;
  progress.Begin(step.view);
  for (int64_t i = 1; i <= steps; ++i) {
    step.source.epoch_ = (i - 1) / 10;
    step.source.batch_ = (i - 1) % 10;
    step.view.local_step = i;
    step.view.global_step = 2 * i;
    step.view.loss = static_cast<float>(i);
    step.view.rows = 3;
    progress.AfterStep(step.view, &requests);
  }
  progress.End(step.view);
  return file.Lines();
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

TEST_CASE("progress: steps from before a run has gone back are in no row") {
  HooksConfig hooks;
  hooks.log_every_steps = 4;
  FileLog file;
  Progress progress(hooks, file.log());
  FakeStep step;
  HookRequests requests;
  step.view.rows = 3;
  for (const int64_t local_step : {1, 2, 3, 2, 3, 4}) {
    if (local_step <= step.view.local_step) progress.Begin(step.view);
    step.view.local_step = local_step;
    step.view.loss = static_cast<float>(local_step);
    progress.AfterStep(step.view, &requests);
  }
  REQUIRE(file.Lines().size() == 1);
  CHECK(file.Lines()[0].find("loss 3 ") != std::string::npos);  // of 2, 3 and 4
}

TEST_CASE("progress: a row every log_every_secs, beside those by steps") {
  HooksConfig hooks;
  hooks.log_every_secs = 1e-9;
  CHECK(RowsOf(hooks, 5).size() == 5);
  hooks.log_every_secs = 0;
  CHECK(RowsOf(hooks, 5).empty());
  hooks.log_every_secs = 1e6;
  hooks.log_every_steps = 2;
  CHECK(RowsOf(hooks, 5).size() == 2);
}

TEST_CASE("progress: rows are by time unless the user says when") {
  HooksConfig hooks;
  CHECK(hooks.LogEverySecs() == 10);
  hooks.log_every_epochs = 1;
  CHECK(hooks.LogEverySecs() == 0);
  hooks.log_every_secs = 3;
  CHECK(hooks.LogEverySecs() == 3);
}

TEST_CASE("progress: a step without rows counts in the pace and not in the loss, and makes no row alone") {
  HooksConfig hooks;
  hooks.log_every_steps = 1;
  FileLog file;
  Progress progress(hooks, file.log());
  FakeStep step;
  HookRequests requests;
  progress.Begin(step.view);
  for (const int64_t rows : {0, 0, 3}) {
    ++step.view.local_step;
    step.view.rows = rows;
    step.view.loss = rows == 0 ? 0 : 4.5f;
    progress.AfterStep(step.view, &requests);
  }
  REQUIRE(file.Lines().size() == 1);
  CHECK(file.Lines()[0].find("local step         3  loss 4.5 ") != std::string::npos);
  LiveProgress live(1, std::nullopt, 0, Clock::now());
  live.OnStep(3, 10);
  live.OnStep(0, 0);
  CHECK(live.Figures(2, 1, Clock::now()).loss == 3);
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

TEST_CASE("progress: with leases the row of an epoch comes when the worker is at a later one, or done") {
  HooksConfig hooks;
  hooks.log_every_steps = 0;
  hooks.log_every_epochs = 2;
  const std::vector<std::string> rows = RowsOf(hooks, 40, /*leased=*/true);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].find(
            "epoch    2  batch     10/10      global step        40  local step        20  loss 10.5 ") !=
        std::string::npos);
  CHECK(rows[1].find("epoch    4  batch     10/10 ") != std::string::npos);
}

TEST_CASE("progress: with leases steps of an earlier epoch make no row of it again") {
  HooksConfig hooks;
  hooks.log_every_steps = 0;
  hooks.log_every_epochs = 1;
  FileLog file;
  Progress progress(hooks, file.log(), /*leased=*/true);
  FakeStep step;
  HookRequests requests;
  step.view.rows = 3;
  for (const int64_t epoch : {0, 1, 0, 1, 2, 1}) {
    step.source.epoch_ = epoch;
    ++step.view.local_step;
    progress.AfterStep(step.view, &requests);
  }
  progress.End(step.view);
  const std::vector<std::string> rows = file.Lines();
  REQUIRE(rows.size() == 3);
  for (size_t row = 0; row < rows.size(); ++row) {
    CHECK(rows[row].find(fmt::format("epoch {:>4} ", row + 1)) != std::string::npos);
  }
}

TEST_CASE("live progress: the line shows what is known and leaves out what is not") {
  LiveFigures figures;
  figures.global_step = 300;
  figures.loss = 0.42134;
  figures.examples_per_s = 61000.4;
  figures.workers = 3;
  CHECK(LiveText(figures) == "step 300  loss 0.4213  61000 examples/s");
  figures.total = 1200;
  figures.left_s = 64.2;
  figures.workers_here = 2;
  CHECK(LiveText(figures) == "step 300/1200 25%  loss 0.4213  ETA 1:05  61000 examples/s  2/3 workers");
  figures.workers = figures.workers_here = 1;
  CHECK(LiveText(figures).find("  1/1 worker") + 12 == LiveText(figures).size());
  figures.left_s = 3 * 3600 + 61;
  CHECK(LiveText(figures).find("ETA 3:01:01") != std::string::npos);
}

TEST_CASE("live progress: it never shows more than 100 %") {
  LiveFigures figures;
  figures.global_step = 1205;  // the workers' parts may differ by a batch
  figures.total = 1200;
  CHECK(LiveText(figures).find("1205/1200 100%") != std::string::npos);
}

TEST_CASE("live progress: loss is the mean since the last drawing; pace and ETA are all workers'") {
  const TimePoint begun;
  LiveProgress progress(2, 1000, 0, begun);
  progress.OnStep(1, 10);
  progress.OnStep(3, 10);
  LiveFigures figures = progress.Figures(4, 2, begun + milliseconds(200));
  CHECK(figures.loss == 2);
  CHECK(figures.examples_per_s == doctest::Approx(200));  // 20 global steps a second with 10 rows each
  CHECK(*figures.left_s == doctest::Approx(996.0 / 20));
  progress.OnStep(5, 10);
  figures = progress.Figures(8, 2, begun + milliseconds(400));
  CHECK(figures.loss == 5);
  CHECK(figures.workers_here == 2);
}

TEST_CASE("live progress: at first the pace is the mean of all steps so far") {
  TimePoint now;
  LiveProgress progress(1, 100000, 0, now);
  progress.OnStep(1, 1);
  progress.Figures(20, 1, now += milliseconds(200));  // a slow start
  progress.OnStep(1, 1);
  CHECK(progress.Figures(400, 1, now += milliseconds(200)).examples_per_s == doctest::Approx(1000));
}

TEST_CASE(
    "live progress: a change of pace reaches the ETA within seconds, and no single drawing jumps to it") {
  TimePoint now;
  LiveProgress progress(1, 100000, 0, now);
  int64_t step = 0;
  for (int i = 0; i < 50; ++i) {
    progress.OnStep(1, 1);
    progress.Figures(step += 200, 1, now += milliseconds(200));  // 1000 steps a second
  }
  progress.OnStep(1, 1);
  LiveFigures figures = progress.Figures(step += 20, 1, now += milliseconds(200));  // 100 steps a second
  CHECK(figures.examples_per_s > 900);
  for (int i = 0; i < 100; ++i) {
    progress.OnStep(1, 1);
    figures = progress.Figures(step += 20, 1, now += milliseconds(200));
  }
  CHECK(figures.examples_per_s < 130);
}

TEST_CASE("duration text: minutes and seconds, and hours") {
  CHECK(DurationText(6.2) == "0:07");
  CHECK(DurationText(750) == "12:30");
  CHECK(DurationText(11100) == "3:05:00");
  CHECK(DurationText(-5) == "0:00");
}

}  // namespace
}  // namespace dtrain
