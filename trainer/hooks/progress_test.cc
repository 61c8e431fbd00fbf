#include "trainer/hooks/progress.h"

#include <doctest/doctest.h>

#include "trainer/hooks/hook_test_util.h"

namespace dtrain {
namespace {

std::vector<std::string> RowsOf(HooksConfig hooks, int64_t steps) {
  FileLog file;
  Progress progress(hooks, file.log());
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
