// RoundVersions: in mode sync, the version of a worker's weights, and the gradients that missed their rounds.
// One exchange is open at a time.
// Owner: Exchanges. Thread: the worker's. Plain values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dtrain {

class RoundVersions {
 public:
  // A block of weights with this version answers exchange `number`.
  void OnAnswer(int64_t number, uint64_t version) {
    const bool first = number != counted_;
    counted_ = number;
    oldest_ = first ? version : std::min(oldest_, version);
    newest_ = first ? version : std::max(newest_, version);
  }
  // The last block of the exchange has come. `gradient`: it pushed a gradient of the weights before.
  void OnWhole(bool gradient) {
    if (gradient && oldest_ != version_ + 1) ++too_late_;
    version_ = oldest_;
  }

  // The version of the weights from which the next gradient is computed.
  uint64_t version() const { return version_; }
  // The blocks of the latest weights have different versions, because an answer got lost while the others
  // went on without this worker. Entering again gets weights of one version.
  bool torn() const { return oldest_ != newest_; }
  // The number of gradients that missed their round.
  int64_t too_late() const { return too_late_; }

 private:
  int64_t counted_ = -1;  // the exchange whose answers are counted
  uint64_t oldest_ = 0;   // among its answers
  uint64_t newest_ = 0;
  uint64_t version_ = 0;
  int64_t too_late_ = 0;
};

}  // namespace dtrain
