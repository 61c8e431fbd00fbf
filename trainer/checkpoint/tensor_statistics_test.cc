#include "trainer/checkpoint/tensor_statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace dtrain {
namespace {

TEST_CASE("statistics: of a few values, however they were added") {
  const float values[] = {3, -1, 4, -2};
  TensorStatistics whole, parts;
  whole.Add(values, 4);
  parts.Add(values, 1);
  parts.Add(values + 1, 3);
  for (const TensorStatistics* each : {&whole, &parts}) {
    const TensorStatistics& of = *each;
    CHECK(of.min() == -2);
    CHECK(of.max() == 4);
    CHECK(of.mean() == 1);
    CHECK(of.stddev() == doctest::Approx(std::sqrt(6.5)));
    CHECK(of.norm() == doctest::Approx(std::sqrt(30)));
    CHECK(of.not_finite() == 0);
    CHECK(of.not_zero() == 4);
  }
}

TEST_CASE("statistics: values that are not finite are counted, and not in the figures") {
  const float values[] = {NAN, 2, INFINITY, 2, -INFINITY};
  TensorStatistics of;
  of.Add(values, 1);
  CHECK(std::isnan(of.mean()));
  CHECK(std::isnan(of.min()));
  of.Add(values + 1, 4);
  CHECK(of.not_finite() == 3);
  CHECK(of.min() == 2);
  CHECK(of.max() == 2);
  CHECK(of.mean() == 2);
  CHECK(of.stddev() == 0);
}

TEST_CASE("statistics: values close together and far from 0 keep their deviation") {
  const float values[] = {1e7f, 1e7f + 1, 1e7f + 2, 1e7f + 3};
  TensorStatistics of;
  for (int i = 0; i < 100000; ++i) of.Add(values, 4);
  CHECK(of.stddev() == doctest::Approx(std::sqrt(1.25)));
}

}  // namespace
}  // namespace dtrain
