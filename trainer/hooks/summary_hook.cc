#include "trainer/hooks/summary_hook.h"

namespace dtrain {

void SummaryHook::AfterStep(const StepView& view, HookRequests*) {
  summary_.CountExamples(view.rows);
  if (!due_ || !summary_.Moved(view.global_step)) return;
  summary_.OnStep({view.global_step, view.loss, view.correct, view.rows, staleness_.TakeRecent()});
}

}  // namespace dtrain
