// StopOnNan (hooks.stop_on_nan): ends the run as diverged where the loss or a value of the gradient is not
// finite, before anything of the gradient is sent; where parameters stay on a device before the worker's next
// step. The ps checks on its own what it gets, or there what it saves.
#pragma once

#include "trainer/hooks/hook.h"

namespace dtrain {

class StopOnNan : public Hook {
 public:
  void OnGradient(const StepView& view, const float* gradient) override;
};

}  // namespace dtrain
