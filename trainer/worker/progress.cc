#include "trainer/worker/progress.h"

#include <algorithm>

namespace dtrain {

bool Progress::Due(const BatchSource& source, int64_t local_step) const {
  if (hooks_.log_every_steps > 0 && local_step % hooks_.log_every_steps == 0) return true;
  return hooks_.log_every_epochs > 0 && source.batches_per_epoch() > 0 &&
         source.batch_in_epoch() + 1 == source.batches_per_epoch() &&
         (source.epoch() + 1) % hooks_.log_every_epochs == 0;
}

void Progress::OnStep(const BatchSource& source, int64_t global_step, int64_t local_step, float loss,
                      int64_t rows) {
  ++steps_;
  examples_ += rows;
  loss_sum_ += static_cast<double>(loss);
  if (!Due(source, local_step)) return;
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(row_began_, now), 1e-9);
  const int64_t batches = source.batches_per_epoch();
  log_.Info(
      "epoch {:>4}  batch {:>6}/{:<6}  global step {:>9}  local step {:>9}  loss {:<11.6g}  "
      "examples/s {:>9.0f}  ms/step {:.3f}",
      source.epoch() + 1, batches > 0 ? fmt::format("{}", source.batch_in_epoch() + 1) : "-",
      batches > 0 ? fmt::format("{}", batches) : "-", global_step, local_step,
      loss_sum_ / static_cast<double>(steps_), static_cast<double>(examples_) / seconds,
      seconds * 1000 / static_cast<double>(steps_));
  row_began_ = now;
  steps_ = examples_ = 0;
  loss_sum_ = 0;
}

}  // namespace dtrain
