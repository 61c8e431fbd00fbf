// What a worker counts of its steps: StepTimes, where the time goes; Staleness, how old the weights of its
// gradients are; LossMean, its losses since the last report.
// Owner and thread: the worker. Plain values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log_histogram.h"

namespace dtrain {

// The parts of a step's time. kData: getting its batch. kCompute: the gradient, its checks, and handing it to
// the transport. kHooks: the hooks after the step. kWait: the ps holds back the answer for other workers.
// kNetwork: the rest of the time until the answer is here, and the wait for a fed batch (data.split: feed).
enum class StepPart { kData, kCompute, kHooks, kWait, kNetwork };
constexpr size_t kStepParts = 5;

// StepTimes: the time of each part of the steps. The loop marks the part that the time since the last mark
// belongs to, so each reading of the clock ends one part and begins the next.
class StepTimes {
 public:
  // Begins the first step.
  void Begin(TimePoint now) { marked_ = now; }
  // The time since the last mark went to `part`.
  void Mark(StepPart part, TimePoint now) { step_[Index(part)] += Since(now); }
  // The time since the last mark went to getting a batch, `waited_nanos` of it to waiting for another task.
  void MarkBatch(TimePoint now, int64_t waited_nanos) {
    const int64_t all = Since(now);
    const int64_t waited = std::min(all, waited_nanos);
    step_[Index(StepPart::kNetwork)] += waited;
    step_[Index(StepPart::kData)] += all - waited;
  }
  // The time since the last mark went to waiting for an answer, which the ps held back for `held_us`.
  void MarkAnswer(TimePoint now, int64_t held_us) {
    const int64_t all = Since(now);
    const int64_t held = std::min(all, held_us * 1000);
    step_[Index(StepPart::kWait)] += held;
    step_[Index(StepPart::kNetwork)] += all - held;
  }
  void EndStep() {
    for (size_t part = 0; part < kStepParts; ++part) parts_[part].Add(step_[part]);
    step_.fill(0);
  }

  double SecondsSinceMark() const { return SecondsSince(marked_); }
  // Nanoseconds per step.
  const LogHistogram& Of(StepPart part) const { return parts_[Index(part)]; }

 private:
  static size_t Index(StepPart part) { return static_cast<size_t>(part); }
  int64_t Since(TimePoint now) {
    const int64_t nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now - marked_).count();
    marked_ = now;
    return nanos;
  }

  TimePoint marked_;
  std::array<int64_t, kStepParts> step_{};  // of the current step
  std::array<LogHistogram, kStepParts> parts_;
};

// LossMean: the mean loss of the rows of several steps, in which each row counts as its weight says.
class LossMean {
 public:
  // Adds the loss of a step, the mean over its `rows`. `weight`: of all of them; unset: each weighs 1.
  void Add(float loss, int64_t rows, std::optional<double> weight) {
    if (rows == 0) return;
    const double all = weight.value_or(static_cast<double>(rows));
    sum_ += all * static_cast<double>(loss);
    weight_ += all;
  }
  bool empty() const { return weight_ == 0; }
  // Returns the mean since the last call. Only if it is not empty.
  double Take() { return std::exchange(sum_, 0) / std::exchange(weight_, 0); }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// Staleness: the number of other updates between the weights from which a gradient was computed and the
// applied gradient. With several open exchanges the worker's own earlier ones are among them. Counts ps 0's
// versions.
class Staleness {
 public:
  explicit Staleness(int64_t max_open) : versions_(static_cast<size_t>(max_open)) {}

  // Weights came that answer no gradient.
  void OnPulled(uint64_t version) { version_ = version; }
  // A gradient of the latest weights was sent.
  void OnPushed() { versions_[pushed_++ % versions_.size()] = version_; }
  // The oldest open gradient was applied and made `version`.
  void OnApplied(uint64_t version) {
    const uint64_t other = version - 1 - versions_[applied_++ % versions_.size()];
    const auto missed = static_cast<int64_t>(std::min(other, kMaxMissed));
    recent_.Add(missed);
    all_.Add(missed);
    version_ = version;
  }

  // The open gradients will not be applied, or their answers will not come.
  void DropOpen() { applied_ = pushed_; }

  // Of the gradients applied since the last call; unset: none.
  std::optional<HistogramFigures> TakeRecent() {
    if (recent_.count() == 0) return std::nullopt;
    const HistogramFigures figures = recent_.Figures();
    recent_.Clear();
    return figures;
  }
  // Of all gradients.
  const LogHistogram& all() const { return all_; }

 private:
  static constexpr uint64_t kMaxMissed = uint64_t{1} << 32;  // bounds what a ps says

  std::vector<uint64_t> versions_;  // of the weights of the open gradients; a ring
  uint64_t version_ = 0;            // of the latest weights
  size_t pushed_ = 0;
  size_t applied_ = 0;
  LogHistogram recent_;
  LogHistogram all_;
};

}  // namespace dtrain
