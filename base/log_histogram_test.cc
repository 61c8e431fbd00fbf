#include "base/log_histogram.h"

#include <doctest/doctest.h>

#include <vector>

namespace dtrain {
namespace {

TEST_CASE("log histogram: small whole numbers are exact") {
  LogHistogram histogram;
  for (int64_t value = 0; value < 64; ++value) histogram.Add(value);
  for (int64_t value = 0; value < 64; ++value) {
    CHECK(histogram.Quantile(static_cast<double>(value + 1) / 64) == static_cast<double>(value));
  }
}

TEST_CASE("log histogram: a quantile of any size is right to 1.6 %") {
  for (int64_t value = 1; value < LogHistogram::kLargest; value += value / 7 + 1) {
    LogHistogram histogram;
    histogram.Add(value);
    histogram.Add(4 * value);
    const auto exact = static_cast<double>(value);
    CAPTURE(value);
    CHECK(histogram.Quantile(0.5) >= 0.984 * exact);
    CHECK(histogram.Quantile(0.5) <= 1.016 * exact);
  }
}

TEST_CASE("log histogram: sum, mean and the greatest value are exact; half and 95 % lie at or below") {
  LogHistogram histogram;
  for (int64_t value = 1; value <= 1000; ++value) histogram.Add(value * 1000);
  const HistogramFigures figures = histogram.Figures();
  CHECK(figures.count == 1000);
  CHECK(figures.sum == 500500000);
  CHECK(figures.mean == 500500);
  CHECK(figures.max == 1000000);
  CHECK(figures.p50 == doctest::Approx(500000).epsilon(0.016));
  CHECK(figures.p95 == doctest::Approx(950000).epsilon(0.016));
}

TEST_CASE("log histogram: what is below zero or beyond its range is counted at its ends") {
  LogHistogram histogram;
  histogram.Add(-5);
  CHECK(histogram.Quantile(1) == 0);
  histogram.Add(int64_t{1} << 50);
  CHECK(histogram.Quantile(1) == doctest::Approx(static_cast<double>(LogHistogram::kLargest)).epsilon(0.016));
  CHECK(histogram.count() == 2);
}

TEST_CASE("log histogram: empty it says nothing, and so it does once cleared") {
  LogHistogram histogram;
  for (int round = 0; round < 2; ++round) {
    CHECK(histogram.count() == 0);
    CHECK(histogram.Quantile(0.95) == 0);
    CHECK(histogram.Figures().mean == 0);
    for (const int64_t value : {3, 70, 1 << 20}) histogram.Add(value);
    CHECK(histogram.Quantile(0.3) == 3);
    CHECK(histogram.count() == 3);
    histogram.Clear();
  }
}

}  // namespace
}  // namespace dtrain
