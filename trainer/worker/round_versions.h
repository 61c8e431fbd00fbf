// RoundVersions: sync: of which version the weights are that a worker has, and whether its gradients came in
// time for their rounds. One exchange is open at a time. Owner: Exchanges. Thread: the worker.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dtrain {

class RoundVersions {
 public:
  // A block of weights of this version is the answer to exchange `number`.
  void OnAnswer(int64_t number, uint64_t version) {
    const bool first = number != counted_;
    counted_ = number;
    oldest_ = first ? version : std::min(oldest_, version);
    newest_ = first ? version : std::max(newest_, version);
  }
  // That was the last of the exchange, which had a gradient of the weights before, or none.
  void OnWhole(bool gradient) {
    if (gradient && oldest_ != version_ + 1) ++too_late_;
    version_ = oldest_;
  }

  // Of the weights that the next gradient is computed from.
  uint64_t version() const { return version_; }
  // The latest weights are of several versions.
  bool torn() const { return oldest_ != newest_; }
  // Gradients that came too late for their round.
  int64_t too_late() const { return too_late_; }

 private:
  int64_t counted_ = -1;  // the exchange that the answers are of
  uint64_t oldest_ = 0;   // of its answers
  uint64_t newest_ = 0;
  uint64_t version_ = 0;
  int64_t too_late_ = 0;
};

}  // namespace dtrain
