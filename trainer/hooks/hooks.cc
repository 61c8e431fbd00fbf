#include "trainer/hooks/hooks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/hooks/progress.h"
#include "trainer/model/finite.h"
#include "trainer/order/order.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {
namespace {

std::optional<std::string> NonFiniteIn(const StepView& view, const float* values) {
  std::optional<std::string> wrong = FirstNonFinite(view.layout, values);
  if (wrong || !view.layout.table) return wrong;
  const auto* const rows = reinterpret_cast<const std::byte*>(values + view.layout.size);
  return FirstNonFinite(*view.layout.table, view.keys, rows, view.layout.factors_name());
}

std::string LargestWeight(const StepView& view) {
  if (!view.layout.table) return LargestValue(view.layout, view.weights).text;
  const NamedValue of_rows = LargestValue(*view.layout.table, view.keys, view.weights + view.layout.size,
                                          view.layout.factors_name());
  if (view.layout.size == 0) return of_rows.text;
  const NamedValue of_tensors = LargestValue(view.layout, view.weights);
  return of_tensors.magnitude > of_rows.magnitude ? of_tensors.text : of_rows.text;
}

// The tensor to look at. A loss may overflow while everything else is still finite.
std::string Culprit(const StepView& view, const std::optional<std::string>& in_gradient) {
  if (in_gradient) return "in its gradient " + *in_gradient;
  if (const auto in_weights = NonFiniteIn(view, view.weights)) return "of its weights " + *in_weights;
  return fmt::format("of its weights {}, the largest", LargestWeight(view));
}

std::string Cause(const StepView& view, const std::optional<std::string>& in_gradient) {
  const std::string loss = std::isnan(view.loss) ? "nan" : fmt::format("{:.6g}", view.loss);
  return fmt::format("the loss is {}, and {}", loss, Culprit(view, in_gradient));
}

// A gradient of such weights says nothing about the batch, and a smaller learning rate would not help.
void ThrowIfBegunSo(const StepView& view) {
  const std::optional<std::string> wrong = NonFiniteIn(view, view.weights);
  if (!wrong) return;
  throw Failure(
      ExitCode::kDiverged,
      fmt::format("{} began with weights of which {}: whoever trained them had diverged. Begin from "
                  "an older checkpoint, checkpoint.resume: run/ckpt/step-000001000, or anew, "
                  "checkpoint.resume: never, with a smaller train.optimizer.learning_rate.",
                  TaskName(view.self), *wrong));
}

}  // namespace

void StopOnNan::OnGradient(const StepView& view, const float* gradient, HookRequests* requests) {
  const std::optional<std::string> in_gradient = NonFiniteIn(view, gradient);
  if (std::isfinite(view.loss) && !in_gradient) {
    in_a_row_ = 0;
    return;
  }
  if (view.local_step == first_step_) ThrowIfBegunSo(view);
  if (config_.skips() && in_a_row_ < config_.skip_limit) {
    ++in_a_row_;
    if (++skipped_ == next_warned_) WarnOfSkipped(view, in_gradient);
    requests->skip = true;
    return;
  }
  const std::string limit =
      config_.skips()
          ? fmt::format("{} in a row {} left out (hooks.skip_limit = {}), and the next: ",
                        Plural(in_a_row_, "gradient"), in_a_row_ == 1 ? "was" : "were", config_.skip_limit)
          : "";
  throw Diverged(fmt::format("{}, local step {}: {}{}", TaskName(view.self), view.local_step, limit,
                             Cause(view, in_gradient)),
                 large_feature_());
}

void StopOnNan::WarnOfSkipped(const StepView& view, const std::optional<std::string>& in_gradient) {
  next_warned_ *= 10;
  log_.Warning(
      "local step {} (epoch {}, batch {}): {}: nothing of this gradient is sent, {} so far "
      "(hooks.stop_on_nan: skip)",
      view.local_step, view.source.epoch() + 1, view.source.batch_in_epoch() + 1, Cause(view, in_gradient),
      Plural(skipped_, "gradient"));
}

void StopOnNan::End(const StepView&) {
  if (skipped_ == 0) return;
  log_.Info("{} {} not finite and left out", Plural(skipped_, "gradient"), skipped_ == 1 ? "was" : "were");
}

void StepCounter::StartInterval(const StepView& view, TimePoint now) {
  began_ = now;
  local_step_ = view.local_step;
  global_step_ = view.global_step;
}

void StepCounter::AfterStep(const StepView& view, HookRequests*) {
  if (view.local_step % every_steps_ != 0) return;
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(began_, now), 1e-9);
  const double global = static_cast<double>(view.global_step - global_step_) / seconds;
  const double local = static_cast<double>(view.local_step - local_step_) / seconds;
  log_.Record(LogLevel::kInfo,
              fmt::format("global step {}, local step {}: {:.1f} global steps/s, {:.1f} local steps/s",
                          view.global_step, view.local_step, global, local),
              {{"global_step", view.global_step},
               {"local_step", view.local_step},
               {"global_steps_per_s", global},
               {"local_steps_per_s", local}});
  StartInterval(view, now);
}

void SummaryHook::AfterStep(const StepView& view, HookRequests*) {
  global_step_ = view.global_step;
  if (!waits_) Count(view);
  if (summary_.Due(view.local_step)) WritePoint();
  if (waits_) Count(view);
}

void SummaryHook::End(const StepView& view) {
  global_step_ = view.global_step;
  WritePoint();
  summary_.Flush();
}

void SummaryHook::Count(const StepView& view) {
  summary_.CountExamples(view.rows);
  loss_.Add(view.loss, view.rows, view.weight);
  correct_ += view.correct;
  rows_ += view.rows;
}

void SummaryHook::WritePoint() {
  if (loss_.empty() || !summary_.Moved(global_step_)) return;
  summary_.OnStep({global_step_, loss_.Take(), std::exchange(correct_, 0), std::exchange(rows_, 0),
                   staleness_.TakeRecent()});
}

void LiveHook::Begin(const StepView& view) {
  const int workers = static_cast<int>(config_.cluster.worker.size());
  progress_.emplace(workers, StepsOfRun(config_, data_.train->rows(), view.source.plan()), view.global_step,
                    Clock::now());
}

void LiveHook::AfterStep(const StepView& view, HookRequests*) {
  if (!progress_->OnStep(view.loss, view.rows, view.weight)) return;
  log_.SetLive(LiveText(progress_->Figures(view.global_step, view.workers_here, Clock::now())));
}

HookList MakeHooks(const HookParts& parts) {
  const HooksConfig& config = parts.config.hooks;
  HookList hooks;
  if (config.checks_finite()) {
    hooks.push_back(std::make_unique<StopOnNan>(
        config, parts.log, [parts] { return LargeFeatureText(parts.config.data, parts.data); }));
  }
  if (parts.summary != nullptr) {
    hooks.push_back(
        std::make_unique<SummaryHook>(*parts.summary, parts.staleness, parts.config.train.in_flight));
  }
  if (config.LogEverySecs() > 0 || config.log_every_steps > 0 || config.log_every_epochs > 0) {
    const bool leased = parts.config.data.split == Split::kDynamic;
    hooks.push_back(std::make_unique<Progress>(config, parts.log, leased));
  }
  if (config.count_every_steps > 0) {
    hooks.push_back(std::make_unique<StepCounter>(config.count_every_steps, parts.log));
  }
  if (parts.self.index == 0 && parts.log.live()) {
    hooks.push_back(std::make_unique<LiveHook>(parts.config, parts.data, parts.log));
  }
  return hooks;
}

}  // namespace dtrain
