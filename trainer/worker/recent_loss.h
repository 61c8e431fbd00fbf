// RecentLoss: the means of a worker's last losses, and of its first. Owner and thread: the worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain {

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
