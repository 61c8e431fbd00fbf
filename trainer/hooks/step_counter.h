// StepCounter (hooks.count_every_steps): a line with the pace of the run and of this worker, every so many
// local steps: the mean since the line before.
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "trainer/hooks/hook.h"

namespace dtrain {

class StepCounter : public Hook {
 public:
  StepCounter(int64_t every_steps, Logger& log) : every_steps_(every_steps), log_(log) {}

  void Begin(const StepView& view) override { StartInterval(view, Clock::now()); }
  void AfterStep(const StepView& view, HookRequests* requests) override;

 private:
  void StartInterval(const StepView& view, TimePoint now);

  const int64_t every_steps_;
  Logger& log_;
  TimePoint began_;  // the interval, as the two below
  int64_t local_step_ = 0;
  int64_t global_step_ = 0;
};

}  // namespace dtrain
