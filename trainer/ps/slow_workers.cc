#include "trainer/ps/slow_workers.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain {
namespace {

constexpr double kSlow = 1.5;  // times the median
constexpr int kReportsInARow = 2;

}  // namespace

// False: no step since the last report.
bool SlowWorkers::Measure(Standing& standing, Pace pace) {
  if (pace.steps < standing.told.steps) standing = Standing();  // started again
  const int64_t steps = pace.steps - standing.told.steps;
  if (steps <= 0) return false;
  standing.step_ms =
      static_cast<double>(pace.own_us - standing.told.own_us) * 1e-3 / static_cast<double>(steps);
  standing.told = pace;
  return true;
}

std::optional<double> SlowWorkers::Median(int workers_here) const {
  std::vector<double> all;
  for (const Standing& standing : standings_) {
    if (standing.step_ms) all.push_back(*standing.step_ms);
  }
  if (all.size() < 2 || static_cast<int>(all.size()) < workers_here) return std::nullopt;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

std::optional<SlowWorkers::Change> SlowWorkers::Report(int worker, Pace pace, int workers_here) {
  Standing& standing = standings_[static_cast<size_t>(worker)];
  if (!Measure(standing, pace)) return std::nullopt;
  const std::optional<double> median = Median(workers_here);
  if (!median) return std::nullopt;
  const bool slow = *standing.step_ms > kSlow * *median;
  standing.against = slow == standing.slow ? 0 : standing.against + 1;
  if (standing.against < kReportsInARow) return std::nullopt;
  standing.slow = slow;
  standing.against = 0;
  return Change{slow, *standing.step_ms, *median};
}

std::string PaceText(const SlowWorkers::Change& change) {
  const std::string pace = fmt::format(
      "{:.3f} ms per step of its own (data, compute and hooks), the median of the workers is {:.3f} ms",
      change.own_ms, change.median_ms);
  if (!change.slow) return "keeps up again: " + pace;
  return "is slow: " + pace +
         ". Look at what else its machine does, at its data, and at what its hooks do (evaluation).";
}

}  // namespace dtrain
