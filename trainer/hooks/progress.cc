#include "trainer/hooks/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/names.h"
#include "trainer/config/run_config.h"

namespace dtrain {

Progress::Progress(const HooksConfig& hooks, Logger& log, bool leased)
    : hooks_(hooks),
      log_(log),
      file_only_(hooks.HasDefaultRows() && log.live()),
      leased_(leased),
      row_began_(Clock::now()) {
  const std::chrono::duration<double> every(hooks.LogEverySecs());
  if (every.count() > 0) timer_.emplace(std::chrono::duration_cast<Clock::duration>(every), row_began_);
}

Progress::Place Progress::PlaceOf(const StepView& view) {
  return {view.source.epoch(), view.source.batch_in_epoch(), view.source.batches_per_epoch(),
          view.global_step, view.local_step};
}

bool Progress::EndsByNumber(int64_t epoch) const { return (epoch + 1) % hooks_.log_every_epochs == 0; }

bool Progress::Due(const StepView& view) {
  if (timer_ && timer_->Due()) return true;
  if (hooks_.log_every_steps > 0 && view.local_step % hooks_.log_every_steps == 0) return true;
  if (hooks_.log_every_epochs == 0 || leased_) return false;
  const Place place = PlaceOf(view);
  return place.batches > 0 && place.batch + 1 == place.batches && EndsByNumber(place.epoch);
}

void Progress::AfterStep(const StepView& view, HookRequests*) {
  if (leased_ && hooks_.log_every_epochs > 0) {
    const Place place = PlaceOf(view);
    if (last_ && place.epoch > last_->epoch && EndsByNumber(last_->epoch)) WriteRow(*last_);
    // What is left of an earlier one, of a lost worker, is in the row of this one.
    if (!last_ || place.epoch >= last_->epoch) last_ = place;
  }
  ++steps_;
  examples_ += view.rows;
  loss_.Add(view.loss, view.rows, view.weight);
  if (Due(view)) WriteRow(PlaceOf(view));
}

void Progress::End(const StepView&) {
  if (last_ && EndsByNumber(last_->epoch)) WriteRow(*last_);
  last_.reset();
}

void Progress::WriteRow(const Place& place) {
  if (loss_.empty()) return;
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(row_began_, now), 1e-9);
  const auto steps = static_cast<double>(std::exchange(steps_, 0));
  const double examples_per_s = static_cast<double>(std::exchange(examples_, 0)) / seconds;
  const double ms_per_step = seconds * 1000 / steps;
  row_began_ = now;
  const double loss = loss_.Take();
  if (!log_.Enabled(LogLevel::kInfo)) return;
  const int64_t epoch = place.epoch + 1, batch = place.batch + 1, batches = place.batches;
  const std::string text = fmt::format(
      "epoch {:>4}  batch {:>6}/{:<6}  global step {:>9}  local step {:>9}  loss {:<11.6g}  "
      "examples/s {:>9.0f}  ms/step {:.3f}",
      epoch, batches > 0 ? fmt::format("{}", batch) : "-", batches > 0 ? fmt::format("{}", batches) : "-",
      place.global_step, place.local_step, loss, examples_per_s, ms_per_step);
  LogField in_epoch{"batch", {}}, of_epoch{"batches", {}};
  if (batches > 0) {
    in_epoch.value = batch;
    of_epoch.value = batches;
  }
  if (file_only_) return log_.WriteToFile(LogLevel::kInfo, text);
  log_.Record(LogLevel::kInfo, text,
              {{"epoch", epoch},
               in_epoch,
               of_epoch,
               {"global_step", place.global_step},
               {"local_step", place.local_step},
               {"loss", loss},
               {"examples_per_s", examples_per_s},
               {"ms_per_step", ms_per_step}});
}

namespace {

constexpr milliseconds kDrawEvery{200};
// The pace is a mean over about this many seconds: steady, but the ETA follows changes.
constexpr double kSmoothSeconds = 5;

}  // namespace

std::string DurationText(double seconds) {
  const auto whole = static_cast<int64_t>(std::min(std::ceil(std::max(seconds, 0.0)), 1e9));
  const int64_t minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string LiveText(const LiveFigures& figures) {
  std::string text = fmt::format("step {}", figures.global_step);
  if (figures.total) {
    const int64_t total = std::max<int64_t>(*figures.total, 1);
    text += fmt::format("/{} {}%", total, std::min<int64_t>(figures.global_step * 100 / total, 100));
  }
  text += fmt::format("  loss {:.4g}", figures.loss);
  if (figures.left_s) text += "  ETA " + DurationText(*figures.left_s);
  text += fmt::format("  {:.0f} examples/s", figures.examples_per_s);
  if (figures.workers_here > 0) {
    text += fmt::format("  {}/{}", figures.workers_here, Plural(figures.workers, "worker"));
  }
  return text;
}

LiveProgress::LiveProgress(int workers, std::optional<int64_t> total, int64_t global_step, TimePoint now)
    : timer_(kDrawEvery, now), began_(now), drawn_at_(now) {
  figures_.workers = workers;
  figures_.total = total;
  figures_.global_step = global_step;
}

LiveFigures LiveProgress::Figures(int64_t global_step, int workers_here, TimePoint now) {
  const double seconds = std::max(SecondsBetween(drawn_at_, now), 1e-9);
  const double pace = static_cast<double>(global_step - figures_.global_step) / seconds;
  // Until then it is the mean of all steps, since the slow first steps must not weigh for long.
  const double weight = std::max(1 - std::exp(-seconds / kSmoothSeconds),
                                 seconds / std::max(SecondsBetween(began_, now), seconds));
  steps_per_s_ += weight * (pace - steps_per_s_);
  figures_.global_step = global_step;
  figures_.workers_here = workers_here;
  if (!loss_.empty()) figures_.loss = loss_.Take();
  if (steps_ > 0) {
    figures_.examples_per_s = steps_per_s_ * static_cast<double>(examples_) / static_cast<double>(steps_);
  }
  figures_.left_s.reset();
  if (figures_.total && steps_per_s_ > 0) {
    const int64_t left = std::max<int64_t>(*figures_.total - global_step, 0);
    figures_.left_s = static_cast<double>(left) / steps_per_s_;
  }
  drawn_at_ = now;
  steps_ = examples_ = 0;
  return figures_;
}

}  // namespace dtrain
