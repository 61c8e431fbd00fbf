// Progress (hooks.log_every_steps, hooks.log_every_epochs): the table of training, one row every so many
// local steps or epochs, in stable columns, which are members of their own in log.format: json:
//   epoch, batch i/n, global step, local step, loss, examples/s, ms/step
// Loss, examples/s and ms/step are means since the row before.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/hooks/hook.h"

namespace dtrain {

class Progress : public Hook {
 public:
  Progress(const HooksConfig& hooks, Logger& log) : hooks_(hooks), log_(log) {}

  // The time until here was start-up.
  void Begin(const StepView&) override { row_began_ = Clock::now(); }
  // Reads the clock only when a row is due.
  void AfterStep(const StepView& view, HookRequests* requests) override;

 private:
  void WriteRow(const StepView& view, double seconds);
  bool Due(const StepView& view) const;

  const HooksConfig& hooks_;
  Logger& log_;
  TimePoint row_began_;
  int64_t steps_ = 0;  // since the last row, as the two below
  int64_t examples_ = 0;
  double loss_sum_ = 0;
};

}  // namespace dtrain
