#include "trainer/hooks/live_hook.h"

#include "trainer/data/order.h"

namespace dtrain {

void LiveHook::Begin(const StepView& view) {
  const int workers = static_cast<int>(config_.cluster.worker.size());
  std::optional<int64_t> rows = data_.train->rows();
  if (rows) *rows -= config_.data.validation;
  progress_.emplace(workers, TotalSteps(config_, rows, workers, view.source.plan()), view.global_step,
                    Clock::now());
}

void LiveHook::AfterStep(const StepView& view, HookRequests*) {
  if (!progress_->OnStep(view.loss, view.rows)) return;
  log_.SetLive(LiveText(progress_->Figures(view.global_step, view.workers_here, Clock::now())));
}

}  // namespace dtrain
