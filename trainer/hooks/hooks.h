// The built-in hooks, and MakeHooks(), which makes those that the config switches on.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/cluster_config.h"
#include "trainer/hooks/hook.h"
#include "trainer/hooks/progress.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/model/layout.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/summary/summary.h"

namespace dtrain {

// StopOnNan (hooks.stop_on_nan): ends the run as diverged when the loss or a value of the gradient is not
// finite, before any of the gradient is sent; where parameters stay on a device, before the worker's next
// step. The ps checks by itself what it receives, or there what it saves.
// With `skip` nothing of such a gradient is sent, until hooks.skip_limit of them in a row are left out. A
// warning tells the 1st, 10th, 100th, ... of them all.
class StopOnNan : public Hook {
 public:
  // `large_feature`: returns what LargeFeatureText() does; called when the run has diverged. `config` and
  // `log` outlive this.
  StopOnNan(const HooksConfig& config, Logger& log, std::function<std::string()> large_feature)
      : config_(config), log_(log), large_feature_(std::move(large_feature)) {}

  void Begin(const StepView& view) override {
    first_step_ = view.local_step + 1;
    in_a_row_ = 0;
  }
  void OnGradient(const StepView& view, const float* gradient, HookRequests* requests) override;
  void End(const StepView& view) override;

 private:
  void WarnOfSkipped(const StepView& view, const std::optional<std::string>& in_gradient);

  const HooksConfig& config_;
  Logger& log_;
  const std::function<std::string()> large_feature_;
  int64_t skipped_ = 0;   // since this task was started
  int64_t in_a_row_ = 0;  // the latest of them
  int64_t next_warned_ = 1;
  int64_t first_step_ = 1;  // the first step from the weights that this task began with or went back to
};

// StepCounter (hooks.count_every_steps): logs the pace of the run and of this worker every so many local
// steps: the mean since the line before.
class StepCounter : public Hook {
 public:
  StepCounter(int64_t every_steps, Logger& log) : every_steps_(every_steps), log_(log) {}

  void Begin(const StepView& view) override { StartInterval(view, Clock::now()); }
  void AfterStep(const StepView& view, HookRequests* requests) override;

 private:
  void StartInterval(const StepView& view, TimePoint now);

  const int64_t every_steps_;
  Logger& log_;
  TimePoint began_;  // of the interval, like the two below
  int64_t local_step_ = 0;
  int64_t global_step_ = 0;
};

// SummaryHook (summary.dir): writes points of a worker's curves for TensorBoard.
class SummaryHook : public Hook {
 public:
  // `in_flight`: train.in_flight.
  SummaryHook(WorkerSummary& summary, Staleness& staleness, int64_t in_flight)
      : summary_(summary), staleness_(staleness), waits_(in_flight > 1) {}
  ~SummaryHook() override { WritePoint(); }  // of a run that has failed

  void Begin(const StepView& view) override {
    summary_.Begin(view.global_step);
    loss_ = {};
    correct_ = rows_ = 0;
  }
  void BeforeStep(const StepView&, HookRequests* requests) override { requests->count_correct = true; }
  void AfterStep(const StepView& view, HookRequests* requests) override;
  void End(const StepView& view) override;

 private:
  void Count(const StepView& view);
  void WritePoint();  // if there is anything to say of a step after the last point

  WorkerSummary& summary_;
  Staleness& staleness_;
  const bool waits_;         // the update of a step may come after the next steps, and its figures with them
  int64_t global_step_ = 0;  // the latest
  LossMean loss_;            // since the last point, like the two below
  int64_t correct_ = 0;
  int64_t rows_ = 0;
};

// LiveHook: the live line of worker 0. Made only when standard error is a terminal.
class LiveHook : public Hook {
 public:
  LiveHook(const Config& config, const LoadedData& data, Logger& log)
      : config_(config), data_(data), log_(log) {}

  void Begin(const StepView& view) override;
  void AfterStep(const StepView& view, HookRequests* requests) override;
  void End(const StepView&) override { log_.SetLive(""); }

 private:
  const Config& config_;
  const LoadedData& data_;
  Logger& log_;
  std::optional<LiveProgress> progress_;
};

// The parts that built-in hooks use. The worker owns them and outlives its hooks.
struct HookParts {
  const Config& config;
  TaskId self;
  const Layout& layout;
  const LoadedData& data;
  Staleness& staleness;
  WorkerSummary* summary;  // null without summary.dir
  Logger& log;
};

// Makes the hooks that the config switches on, in the order in which they are called.
HookList MakeHooks(const HookParts& parts);

}  // namespace dtrain
