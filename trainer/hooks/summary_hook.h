// SummaryHook (summary.dir): points of a worker's curves for TensorBoard.
#pragma once

#include "trainer/hooks/hook.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/summary/summary.h"

namespace dtrain {

class SummaryHook : public Hook {
 public:
  SummaryHook(WorkerSummary& summary, Staleness& staleness) : summary_(summary), staleness_(staleness) {}

  void Begin(const StepView& view) override { summary_.Begin(view.global_step); }
  void BeforeStep(const StepView& view, HookRequests* requests) override {
    due_ = summary_.Due(view.local_step);
    requests->count_correct |= due_;
  }
  void AfterStep(const StepView& view, HookRequests* requests) override;
  void End(const StepView&) override { summary_.Flush(); }

 private:
  WorkerSummary& summary_;
  Staleness& staleness_;
  bool due_ = false;
};

}  // namespace dtrain
