#include "trainer/leader/slow_workers.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain {
namespace {

constexpr double kSlow = 1.5;      // times the median
constexpr double kSlowByMs = 1.0;  // and so much more per step

}  // namespace

// False: no step since the last report.
bool SlowWorkers::Measure(Record& record, Pace pace) {
  if (pace.steps < record.told.steps) record = Record();  // the worker was started again
  const int64_t steps = pace.steps - record.told.steps;
  if (steps <= 0) return false;
  record.step_ms = static_cast<double>(pace.own_us - record.told.own_us) * 1e-3 / static_cast<double>(steps);
  record.told = pace;
  return true;
}

std::optional<double> SlowWorkers::Median(int workers_here) const {
  std::vector<double> all;
  for (const Record& record : workers_) {
    if (record.step_ms) all.push_back(*record.step_ms);
  }
  if (all.size() < 2 || static_cast<int>(all.size()) < workers_here) return std::nullopt;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

std::optional<SlowWorkers::Change> SlowWorkers::Report(int worker, Pace pace, int workers_here,
                                                       TimePoint now) {
  Record& record = workers_[static_cast<size_t>(worker)];
  if (!Measure(record, pace)) return std::nullopt;
  const std::optional<double> median = Median(workers_here);
  if (!median) return std::nullopt;
  const bool slow = *record.step_ms > std::max(kSlow * *median, *median + kSlowByMs);
  if (slow == record.slow) {
    record.against.reset();
    return std::nullopt;
  }
  if (!record.against) record.against = now;
  if (SecondsBetween(*record.against, now) < detect_s_) return std::nullopt;
  record.slow = slow;
  record.against.reset();
  return Change{slow, *record.step_ms, *median};
}

// Bounds the counts, so that differences fit whatever a peer says.
SlowWorkers::Pace PaceIn(const wire::Heartbeat& beat) {
  const auto bounded = [](uint64_t count) { return static_cast<int64_t>(count & 0x3fffffffffffffff); };
  return {bounded(beat.steps()), bounded(beat.own_us())};
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
