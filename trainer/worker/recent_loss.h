// RecentLoss: the mean of a worker's last losses. Owner and thread: the worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain {

class RecentLoss {
 public:
  void Add(float loss) { losses_[static_cast<size_t>(count_++) % losses_.size()] = loss; }
  int64_t count() const { return count_; }  // of all losses
  // Of the last 100; of none: not a number.
  double Mean() const {
    const size_t here = std::min(static_cast<size_t>(count_), losses_.size());
    double sum = 0;
    for (size_t i = 0; i < here; ++i) sum += static_cast<double>(losses_[i]);
    return sum / static_cast<double>(here);
  }

 private:
  std::array<float, 100> losses_{};  // a ring
  int64_t count_ = 0;
};

}  // namespace dtrain
