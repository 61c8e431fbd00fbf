// EvaluationHook (eval.every_steps): the chief evaluates the weights that it has on the whole set of eval.on,
// logs it, and ends the run where eval.patience is over. Nothing is pulled for it: the run is the same with
// it. Every worker that has data has this hook, since each may become the chief.
#pragma once

#include <limits>

#include "trainer/hooks/hook.h"
#include "trainer/hooks/make_hooks.h"
#include "trainer/hooks/patience.h"

namespace dtrain {

class EvaluationHook : public Hook {
 public:
  explicit EvaluationHook(const HookParts& parts) : parts_(parts), patience_(parts.config.eval.patience) {}

  void Begin(const StepView& view) override;
  void AfterStep(const StepView& view, HookRequests* requests) override;

 private:
  void SaveWhereBest(const Evaluation& evaluation, HookRequests* requests);
  void Report(const StepView& view, const Evaluation& evaluation);

  const HookParts parts_;
  Patience patience_;
  double best_saved_ = std::numeric_limits<double>::infinity();  // the loss of the best checkpoint
};

}  // namespace dtrain
