// StopOnNan (hooks.stop_on_nan): ends the run as diverged, before anything of the gradient is sent, where the
// loss or a value of the gradient is not finite. The ps checks on its own what it gets.
#pragma once

#include "trainer/hooks/hook.h"

namespace dtrain {

class StopOnNan : public Hook {
 public:
  void OnGradient(const StepView& view, const float* gradient) override;
};

}  // namespace dtrain
