#include "trainer/summary/ps_summary.h"

#include <algorithm>

namespace dtrain {

std::unique_ptr<PsSummary> PsSummary::Open(const Config& config, ExitHooks& hooks, Logger& log) {
  if (config.summary.dir.empty()) return nullptr;
  return std::unique_ptr<PsSummary>(new PsSummary(config, hooks, log));
}

PsSummary::PsSummary(const Config& config, ExitHooks& hooks, Logger& log)
    : writer_(config.summary.dir + "/ps-0", hooks, log), schedule_(config.summary) {
  log.Info("summaries for TensorBoard: {}", writer_.path());
}

void PsSummary::Begin(int64_t global_step) {
  point_at_ = Clock::now();
  point_step_ = global_step;
}

void PsSummary::OnUpdate(int64_t global_step, int workers) {
  const TimePoint now = Clock::now();
  const auto steps = static_cast<double>(global_step - point_step_);
  if (steps > 0) writer_.Add("global_step/sec", steps / std::max(SecondsBetween(point_at_, now), 1e-9));
  writer_.Add("workers", workers);
  writer_.WriteScalars(global_step, now);
  point_at_ = now;
  point_step_ = global_step;
}

}  // namespace dtrain
