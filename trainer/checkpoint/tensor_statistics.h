// TensorStatistics: what the values of one tensor, or of one slot of it, look like.
#pragma once

#include <cstdint>
#include <limits>

namespace dtrain {

class TensorStatistics {
 public:
  void Add(const float* values, int64_t count);

  int64_t not_finite() const { return not_finite_; }
  // Of the finite ones; NaN where there are none.
  double min() const { return finite_ == 0 ? kNone : min_; }
  double max() const { return finite_ == 0 ? kNone : max_; }
  double mean() const;
  double stddev() const;  // of all values, not of a sample
  double norm() const;    // the root of the sum of squares

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  int64_t finite_ = 0;
  int64_t not_finite_ = 0;
  float min_ = std::numeric_limits<float>::infinity();
  float max_ = -std::numeric_limits<float>::infinity();
  double squares_ = 0;
  // Sums of what is beyond the first finite value: values far from 0 and close together keep their deviation.
  double shift_ = 0;
  double shifted_ = 0;
  double shifted_squares_ = 0;
};

}  // namespace dtrain
