#include "trainer/hooks/progress.h"

#include <algorithm>

namespace dtrain {

bool Progress::Due(const StepView& view) const {
  const BatchSource& source = view.source;
  if (hooks_.log_every_steps > 0 && view.local_step % hooks_.log_every_steps == 0) return true;
  return hooks_.log_every_epochs > 0 && source.batches_per_epoch() > 0 &&
         source.batch_in_epoch() + 1 == source.batches_per_epoch() &&
         (source.epoch() + 1) % hooks_.log_every_epochs == 0;
}

void Progress::AfterStep(const StepView& view, HookRequests*) {
  ++steps_;
  examples_ += view.rows;
  loss_sum_ += static_cast<double>(view.loss);
  if (!Due(view)) return;
  const TimePoint now = Clock::now();
  WriteRow(view, std::max(SecondsBetween(row_began_, now), 1e-9));
  row_began_ = now;
  steps_ = examples_ = 0;
  loss_sum_ = 0;
}

void Progress::WriteRow(const StepView& view, double seconds) {
  if (!log_.Enabled(LogLevel::kInfo)) return;
  const BatchSource& source = view.source;
  const int64_t epoch = source.epoch() + 1, batch = source.batch_in_epoch() + 1;
  const int64_t batches = source.batches_per_epoch();  // 0: an epoch without end
  const auto steps = static_cast<double>(steps_);
  const double loss = loss_sum_ / steps;
  const double examples_per_s = static_cast<double>(examples_) / seconds;
  const double ms_per_step = seconds * 1000 / steps;
  const std::string text = fmt::format(
      "epoch {:>4}  batch {:>6}/{:<6}  global step {:>9}  local step {:>9}  loss {:<11.6g}  "
      "examples/s {:>9.0f}  ms/step {:.3f}",
      epoch, batches > 0 ? fmt::format("{}", batch) : "-", batches > 0 ? fmt::format("{}", batches) : "-",
      view.global_step, view.local_step, loss, examples_per_s, ms_per_step);
  LogField in_epoch{"batch", {}}, of_epoch{"batches", {}};
  if (batches > 0) {
    in_epoch.value = batch;
    of_epoch.value = batches;
  }
  log_.Record(LogLevel::kInfo, text,
              {{"epoch", epoch},
               in_epoch,
               of_epoch,
               {"global_step", view.global_step},
               {"local_step", view.local_step},
               {"loss", loss},
               {"examples_per_s", examples_per_s},
               {"ms_per_step", ms_per_step}});
}

}  // namespace dtrain
