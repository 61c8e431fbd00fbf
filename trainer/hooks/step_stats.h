// What a worker counts of its steps: StepTimes, where the time goes; Staleness, how old the weights of its
// gradients are; RecentLoss, the means of its losses. Owner and thread: the worker. Plain values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/log_histogram.h"

namespace dtrain {

// Of a step: getting its batch; the gradient, its checks and handing it to the transport; hooks after the
// step; what the ps held the answer back for other workers; and the rest of the time until the answer was
// here, with that until a fed batch was (data.split: feed).
enum class StepPart { kData, kCompute, kHooks, kWait, kNetwork };
constexpr size_t kStepParts = 5;

// StepTimes: the loop marks which part the time since the last mark belongs to, so that each reading of the
// clock ends one part and begins the next.
class StepTimes {
 public:
  // The first step begins.
  void Begin(TimePoint now) { marked_ = now; }
  // The time since the last mark was spent in `part`.
  void Mark(StepPart part, TimePoint now) { step_[Index(part)] += Since(now); }
  // The time since the last mark was spent getting a batch, of it `waited_nanos` waiting for another task.
  void MarkBatch(TimePoint now, int64_t waited_nanos) {
    const int64_t all = Since(now);
    const int64_t waited = std::min(all, waited_nanos);
    step_[Index(StepPart::kNetwork)] += waited;
    step_[Index(StepPart::kData)] += all - waited;
  }
  // The time since the last mark was spent until an answer came that the ps held back for `held_us`.
  void MarkAnswer(TimePoint now, int64_t held_us) {
    const int64_t all = Since(now);
    const int64_t held = std::min(all, held_us * 1000);
    step_[Index(StepPart::kWait)] += held;
    step_[Index(StepPart::kNetwork)] += all - held;
  }
  // The step is over.
  void EndStep() {
    for (size_t part = 0; part < kStepParts; ++part) parts_[part].Add(step_[part]);
    own_nanos_ +=
        step_[Index(StepPart::kData)] + step_[Index(StepPart::kCompute)] + step_[Index(StepPart::kHooks)];
    last_ = step_;
    step_.fill(0);
  }

  // Of the last step that is over.
  int64_t last_nanos(StepPart part) const { return last_[Index(part)]; }
  // How long ago the last mark was.
  double SecondsSinceMark() const { return SecondsSince(marked_); }
  // Over all steps: what this worker spent itself, neither waiting nor on the network.
  int64_t own_nanos() const { return own_nanos_; }
  // Nanoseconds of each step.
  const LogHistogram& Of(StepPart part) const { return parts_[Index(part)]; }

 private:
  static size_t Index(StepPart part) { return static_cast<size_t>(part); }
  int64_t Since(TimePoint now) {
    const int64_t nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now - marked_).count();
    marked_ = now;
    return nanos;
  }

  TimePoint marked_;
  std::array<int64_t, kStepParts> step_{};  // of the step in hand
  std::array<int64_t, kStepParts> last_{};
  int64_t own_nanos_ = 0;
  std::array<LogHistogram, kStepParts> parts_;
};

// Staleness: how many other updates were applied between the weights that a gradient was computed from and
// the gradient itself. With several open exchanges, the worker's own earlier ones are among them. ps 0's
// versions count.
class Staleness {
 public:
  explicit Staleness(int64_t max_open) : versions_(static_cast<size_t>(max_open)) {}

  // Weights came that answer no gradient.
  void OnPulled(uint64_t version) { version_ = version; }
  // A gradient of the latest weights goes out.
  void OnPushed() { versions_[pushed_++ % versions_.size()] = version_; }
  // The oldest open gradient was applied and made `version`.
  void OnApplied(uint64_t version) {
    const auto missed = static_cast<int64_t>(version - 1 - versions_[applied_++ % versions_.size()]);
    recent_.Add(missed);
    all_.Add(missed);
    version_ = version;
  }

  // What is open will not be applied, or nobody will hear of it.
  void DropOpen() { applied_ = pushed_; }

  // Of the gradients since the last call; unset when none was applied since.
  std::optional<HistogramFigures> TakeRecent() {
    if (recent_.count() == 0) return std::nullopt;
    const HistogramFigures figures = recent_.Figures();
    recent_.Clear();
    return figures;
  }
  // Of all gradients.
  const LogHistogram& all() const { return all_; }

 private:
  std::vector<uint64_t> versions_;  // of the weights of open gradients; a ring
  uint64_t version_ = 0;            // of the latest weights
  size_t pushed_ = 0;
  size_t applied_ = 0;
  LogHistogram recent_;
  LogHistogram all_;
};

// RecentLoss: the means of the last losses, and of the first.
class RecentLoss {
 public:
  // Of a step with so many rows.
  void Add(float loss, int64_t rows) {
    if (first_rows_ < kFirstRows) {
      first_sum_ += static_cast<double>(loss) * static_cast<double>(rows);
      first_rows_ += rows;
    }
    losses_[static_cast<size_t>(count_++) % losses_.size()] = loss;
  }
  int64_t count() const { return count_; }  // of all losses
  // Of the last 100; of none: not a number.
  double Mean() const {
    const size_t here = std::min(static_cast<size_t>(count_), losses_.size());
    double sum = 0;
    for (size_t i = 0; i < here; ++i) sum += static_cast<double>(losses_[i]);
    return sum / static_cast<double>(here);
  }
  // Of the first step, or of as many steps as have 20 rows: fewer say little, and later ones may be those of
  // a rate that is too high already. Of none: not a number.
  double FirstMean() const { return first_sum_ / static_cast<double>(first_rows_); }

 private:
  static constexpr int64_t kFirstRows = 20;

  std::array<float, 100> losses_{};  // a ring
  int64_t count_ = 0;
  double first_sum_ = 0;  // over rows
  int64_t first_rows_ = 0;
};

}  // namespace dtrain
