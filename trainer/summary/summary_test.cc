#include "trainer/summary/summary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/testing/files.h"
#include "trainer/summary/event_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// The x of every point of `loss` in the one file of `directory`.
std::vector<int64_t> LossSteps(const std::string& directory) {
  std::vector<int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    for (const event::Event& event : ReadEvents(entry.path().string())) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() == "loss") steps.push_back(event.step());
      }
    }
  }
  return steps;
}

TEST_CASE("schedule: points by steps are as set, and in a long run farther and farther apart") {
  SummaryConfig config;
  config.every_steps = 10;
  Schedule schedule(config);
  constexpr int64_t kSteps = 100'000'000, kExact = 10 * Schedule::kPointsInARow;
  int64_t exact = 0, all = 0, last = 0;
  for (int64_t step = 1; step <= kSteps; ++step) {
    if (!schedule.Due(step)) continue;
    exact += step <= kExact ? 1 : 0;
    ++all;
    last = step;
  }
  CHECK(exact == Schedule::kPointsInARow);
  CHECK(all < 8 * Schedule::kPointsInARow);  // not 100 times as many
  CHECK(all > 5 * Schedule::kPointsInARow);
  CHECK(kSteps - last < 10 << 7);
}

TEST_CASE("worker summary: a point that is due waits for the global step to move on") {
  Config config = LinearCluster(1, 2, 100);
  config.summary.dir = testing::NewDirectory();
  config.summary.every_steps = 2;
  LogOptions quiet;
  quiet.standard_error = false;
  Logger log("worker 1", quiet);
  ExitHooks hooks;
  {
    const auto summary = WorkerSummary::Open(config, 1, "cpu:0", Layout(), hooks, log);
    summary->Begin(0);
    const int64_t global_steps[] = {0, 0, 0, 4, 5, 5, 5, 7};  // after the local steps 1, 2, ...
    int64_t local_step = 0;
    for (const int64_t step : global_steps) {
      if (summary->Due(++local_step) && summary->Moved(step)) summary->OnStep({step, 0.5f, 0, 1, {}});
    }
  }
  CHECK(LossSteps(config.summary.dir + "/worker-1") == std::vector<int64_t>{4, 5, 7});
}

}  // namespace
}  // namespace dtrain
