// LogHistogram: counts of values in buckets that grow with the value. Buckets are one value wide up to 63;
// above, each power of two has 32. A quantile is therefore right to 1.6 %. The size is fixed: adding
// allocates nothing. Thread: the owner's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain {

struct HistogramFigures {
  int64_t count = 0;
  double sum = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double max = 0;
};

class LogHistogram {
 public:
  // Adds one value. Negative values count as 0, values beyond kLargest (18 minutes in nanoseconds) as
  // kLargest.
  void Add(int64_t value) {
    value = std::max<int64_t>(value, 0);
    const size_t bucket = BucketOf(std::min(value, kLargest));
    ++counts_[bucket];
    first_ = std::min(first_, bucket);
    last_ = std::max(last_, bucket);
    ++count_;
    sum_ += value;
    max_ = std::max(max_, value);
  }
  // Removes all values. The cost grows with the distance between the smallest and the largest value.
  void Clear();

  int64_t count() const { return count_; }
  int64_t sum() const { return sum_; }  // exact, as is the maximum
  // Returns the value at or below which `share` (0 to 1) of all values lie; 0 if there are none.
  double Quantile(double share) const;
  HistogramFigures Figures() const;

  static constexpr int64_t kLargest = (int64_t{1} << 40) - 1;

 private:
  static constexpr int kBits = 5;
  static constexpr int64_t kPerOctave = int64_t{1} << kBits;
  static constexpr size_t kBuckets = static_cast<size_t>((40 - kBits + 1) * kPerOctave);

  static size_t BucketOf(int64_t value) {
    if (value < kPerOctave) return static_cast<size_t>(value);
    const int octave = 63 - __builtin_clzll(static_cast<uint64_t>(value)) - kBits;
    return static_cast<size_t>(octave * kPerOctave + (value >> octave));
  }
  static double Midpoint(size_t bucket);

  std::array<uint64_t, kBuckets> counts_{};
  size_t first_ = kBuckets;  // first_ and last_: the outermost buckets that are not empty
  size_t last_ = 0;
  int64_t count_ = 0;
  int64_t sum_ = 0;
  int64_t max_ = 0;
};

}  // namespace dtrain
