#include "trainer/checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>

namespace dtrain {

void TensorStatistics::Add(const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i];
    if (!std::isfinite(value)) {
      ++not_finite_;
      continue;
    }
    if (finite_ == 0) shift_ = value;
    ++finite_;
    if (value != 0) ++not_zero_;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    const double exact = value;
    squares_ += exact * exact;
    shifted_ += exact - shift_;
    shifted_squares_ += (exact - shift_) * (exact - shift_);
  }
}

double TensorStatistics::mean() const {
  return finite_ == 0 ? kNone : shift_ + shifted_ / static_cast<double>(finite_);
}

double TensorStatistics::stddev() const {
  if (finite_ == 0) return kNone;
  const double count = static_cast<double>(finite_);
  return std::sqrt(std::max(0.0, (shifted_squares_ - shifted_ * shifted_ / count) / count));
}

double TensorStatistics::norm() const { return finite_ == 0 ? kNone : std::sqrt(squares_); }

}  // namespace dtrain
