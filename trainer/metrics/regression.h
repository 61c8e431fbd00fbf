// Regression: root mean squared error, mean absolute error and R squared = 1 - residuals / variation about
// the mean (Draper and Smith, "Applied Regression Analysis", 1998, chapter 1). The variation is summed about
// a running mean (Welford, Technometrics 4, 1962), since the difference of two large sums would lose all
// digits.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace dtrain {

class Regression {
 public:
  void Add(double value, double target) {
    const double error = value - target;
    squares_ += error * error;
    absolutes_ += std::abs(error);
    ++rows_;
    const double delta = target - mean_;
    mean_ += delta / static_cast<double>(rows_);
    variation_ += delta * (target - mean_);
  }

  double rmse() const { return rows_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(rows_)); }
  double mae() const { return rows_ == 0 ? 0 : absolutes_ / static_cast<double>(rows_); }
  // Unset where all targets are equal.
  std::optional<double> r_squared() const {
    if (variation_ == 0) return std::nullopt;
    return 1 - squares_ / variation_;
  }

 private:
  int64_t rows_ = 0;
  double squares_ = 0;
  double absolutes_ = 0;
  double mean_ = 0;       // of the targets
  double variation_ = 0;  // of the targets about it
};

}  // namespace dtrain
