#include "trainer/ps/run_stop.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/signals.h"
#include "trainer/result/run_summary.h"

namespace dtrain {
namespace {

// Of failure.grace_s: the rest is for ending.
constexpr double kSavingShare = 0.9;

}  // namespace

void RunStop::Ask(int signal, TimePoint now) {
  signal_ = signal;
  asked_at_ = now;
  const char* const what =
      config_.checkpoint.dir.empty() ? "ends, and nothing is saved" : "is saved and ends";
  log_.Warning("{}: the run {}", SignalName(signal), what);
}

std::string RunStop::Overdue(TimePoint now) const {
  const double most = config_.failure.grace_s * kSavingShare;
  if (!asked() || SecondsBetween(asked_at_, now) <= most) return std::string();
  return fmt::format("it took longer than {:.1f} s (failure.grace_s)", most);
}

void RunStop::End(const Reached& reached, const std::string& unsaved) const {
  const bool kept = unsaved.empty() && !config_.checkpoint.dir.empty();
  RunSummary summary;
  summary.status = "stopped";
  // Outside sync a few gradients that were under way come after the checkpoint.
  summary.global_step = kept && reached.saved_step >= 0 ? reached.saved_step : reached.global_step;
  const bool goes_back = reached.starting && history_.begun && !history_.checkpoint.empty();
  if (goes_back) summary.global_step = history_.checkpoint_step;
  for (const Member& member : members_.all()) {
    if (member.task.role == Role::kWorker) summary.local_steps.push_back(member.taken);
  }
  const std::string& newest = history_.checkpoint;
  if (!newest.empty()) summary.checkpoint = newest;
  const std::string stopped = "stopped by " + SignalName(signal_);
  const std::string at = fmt::format("{} at global step {}", stopped, summary.global_step);
  const std::string which = newest.empty() ? "there is no checkpoint" : "the newest checkpoint is " + newest;
  if (config_.checkpoint.dir.empty()) {
    throw RunStopped(ExitCode::kInternal, fmt::format("{}; {}", at, kNothingKept), std::move(summary));
  }
  if (!kept) {
    throw RunStopped(ExitCode::kInternal, fmt::format("{}; nothing was saved: {}; {}", at, unsaved, which),
                     std::move(summary));
  }
  const ExitCode code = StopExitCode(signal_);
  if (reached.starting && newest.empty()) {
    throw RunStopped(
        code,
        fmt::format("{} before {}; what is in {} stays as it is", stopped,
                    history_.begun ? "the run went on from its newest checkpoint" : "a step was taken",
                    config_.checkpoint.dir),
        std::move(summary));
  }
  const int64_t lost = goes_back ? history_.lost_step - history_.checkpoint_step : 0;
  throw RunStopped(code,
                   fmt::format("{}; {}{}", at, which,
                               lost > 0 ? fmt::format("; {} behind it are lost", Plural(lost, "step")) : ""),
                   std::move(summary));
}

}  // namespace dtrain
