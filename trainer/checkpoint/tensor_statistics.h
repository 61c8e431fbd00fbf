// TensorStatistics: statistics of the values of one tensor, or of one slot of it.
#pragma once

#include <cstdint>
#include <limits>

namespace dtrain {

class TensorStatistics {
 public:
  void Add(const float* values, int64_t count);

  int64_t not_finite() const { return not_finite_; }
  int64_t not_zero() const { return not_zero_; }  // of the finite ones
  // Over the finite values; NaN if there are none.
  double min() const { return finite_ == 0 ? kNone : min_; }
  double max() const { return finite_ == 0 ? kNone : max_; }
  double mean() const;
  double stddev() const;  // of all values as the population, not of a sample
  double norm() const;    // the root of the sum of squares

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  int64_t finite_ = 0;
  int64_t not_finite_ = 0;
  int64_t not_zero_ = 0;
  float min_ = std::numeric_limits<float>::infinity();
  float max_ = -std::numeric_limits<float>::infinity();
  double squares_ = 0;
  // Sums of the differences from the first finite value, which keep the deviation exact for values that are
  // far from 0 and close together.
  double shift_ = 0;
  double shifted_ = 0;
  double shifted_squares_ = 0;
};

}  // namespace dtrain
