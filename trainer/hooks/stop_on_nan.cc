#include "trainer/hooks/stop_on_nan.h"

#include <fmt/core.h>

#include <cmath>

#include "base/error.h"
#include "trainer/model/finite.h"

namespace dtrain {
namespace {

// Which tensor to look at. A loss may overflow while all else is still finite.
std::string Culprit(const StepView& view, const std::optional<std::string>& in_gradient) {
  if (in_gradient) return "in its gradient " + *in_gradient;
  if (const auto in_weights = FirstNonFinite(view.layout, view.weights))
    return "of its weights " + *in_weights;
  return fmt::format("of its weights {}, the largest", LargestValue(view.layout, view.weights));
}

// A gradient of such weights says nothing about the batch, and a smaller learning rate would not help.
void ThrowIfBegunSo(const StepView& view) {
  const std::optional<std::string> wrong = FirstNonFinite(view.layout, view.weights);
  if (!wrong) return;
  throw Failure(
      ExitCode::kDiverged,
      fmt::format("{} began with weights of which {}: whoever trained them had diverged. Begin from "
                  "an older checkpoint, checkpoint.resume: run/ckpt/step-000001000, or anew, "
                  "checkpoint.resume: never, with a smaller train.optimizer.learning_rate.",
                  TaskName(view.self), *wrong));
}

}  // namespace

void StopOnNan::OnGradient(const StepView& view, const float* gradient) {
  const std::optional<std::string> in_gradient = FirstNonFinite(view.layout, gradient);
  if (std::isfinite(view.loss) && !in_gradient) return;
  if (view.local_step == first_step_) ThrowIfBegunSo(view);
  const std::string loss = std::isnan(view.loss) ? "nan" : fmt::format("{:.6g}", view.loss);
  throw Diverged(fmt::format("{}, local step {}: the loss is {}, and {}", TaskName(view.self),
                             view.local_step, loss, Culprit(view, in_gradient)));
}

}  // namespace dtrain
