#include "base/log_histogram.h"

#include <cmath>

namespace dtrain {

void LogHistogram::Clear() {
  for (size_t bucket = first_; bucket <= last_ && bucket < kBuckets; ++bucket) counts_[bucket] = 0;
  first_ = kBuckets;
  last_ = 0;
  count_ = sum_ = max_ = 0;
}

double LogHistogram::Midpoint(size_t bucket) {
  const auto index = static_cast<int64_t>(bucket);
  if (index < 2 * kPerOctave) return static_cast<double>(index);
  const int64_t octave = index / kPerOctave - 1;
  const int64_t lower = (index - octave * kPerOctave) << octave;
  return static_cast<double>(lower) + static_cast<double>((int64_t{1} << octave) - 1) / 2;
}

double LogHistogram::Quantile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t bucket = first_; bucket < last_; ++bucket) {
    seen += static_cast<int64_t>(counts_[bucket]);
    if (seen >= rank) return Midpoint(bucket);
  }
  return std::min(Midpoint(last_), static_cast<double>(max_));
}

HistogramFigures LogHistogram::Figures() const {
  HistogramFigures figures;
  figures.count = count_;
  figures.sum = static_cast<double>(sum_);
  figures.mean = count_ == 0 ? 0 : figures.sum / static_cast<double>(count_);
  figures.p50 = Quantile(0.5);
  figures.p95 = Quantile(0.95);
  figures.max = static_cast<double>(max_);
  return figures;
}

}  // namespace dtrain
