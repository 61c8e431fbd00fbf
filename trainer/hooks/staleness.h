// Staleness: how many other updates were applied between the weights that a gradient was computed from and
// the gradient itself. With several open exchanges, the worker's own earlier ones are among them. ps 0's
// versions count. Owner: Exchanges. Thread: the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/log_histogram.h"

namespace dtrain {

class Staleness {
 public:
  explicit Staleness(int64_t most_open) : versions_(static_cast<size_t>(most_open)) {}

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

}  // namespace dtrain
