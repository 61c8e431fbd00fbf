#include "trainer/hooks/step_counter.h"

#include <algorithm>

namespace dtrain {

void StepCounter::StartInterval(const StepView& view, TimePoint now) {
  began_ = now;
  local_step_ = view.local_step;
  global_step_ = view.global_step;
}

void StepCounter::AfterStep(const StepView& view, HookRequests*) {
  if (view.local_step % every_steps_ != 0) return;
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(began_, now), 1e-9);
  const double global = static_cast<double>(view.global_step - global_step_) / seconds;
  const double local = static_cast<double>(view.local_step - local_step_) / seconds;
  log_.Record(LogLevel::kInfo,
              fmt::format("global step {}, local step {}: {:.1f} global steps/s, {:.1f} local steps/s",
                          view.global_step, view.local_step, global, local),
              {{"global_step", view.global_step},
               {"local_step", view.local_step},
               {"global_steps_per_s", global},
               {"local_steps_per_s", local}});
  StartInterval(view, now);
}

}  // namespace dtrain
