// StopOnNan (hooks.stop_on_nan): ends the run as diverged where the loss or a value of the gradient is not
// finite, before anything of the gradient is sent; where parameters stay on a device before the worker's next
// step. The ps checks on its own what it gets, or there what it saves.
#pragma once

#include <cstdint>

#include "trainer/hooks/hook.h"

namespace dtrain {

class StopOnNan : public Hook {
 public:
  void Begin(const StepView& view) override { first_step_ = view.local_step + 1; }
  void OnGradient(const StepView& view, const float* gradient) override;

 private:
  int64_t first_step_ = 1;  // of the weights that this task began with, or went back to
};

}  // namespace dtrain
