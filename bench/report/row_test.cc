#include "bench/report/row.h"

#include <doctest/doctest.h>

namespace dtrain::bench {

TEST_CASE("median: the middle one of an odd number, the mean of the two of an even number") {
  CHECK(Median({3, 1, 2}) == 2);
  CHECK(Median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("row: ratios are of the same round and below 1 where dtrain is slower") {
  Row row;
  row.dtrain = {50, 30};
  row.limit = {100, 40};
  CHECK(row.Ratios() == std::vector<double>{0.5, 0.75});
}

TEST_CASE("row: ratios are below 1 where dtrain takes longer") {
  Row row;
  row.smaller_is_better = true;
  row.dtrain = {4};
  row.limit = {1};
  CHECK(row.Ratios() == std::vector<double>{0.25});
}

TEST_CASE("row: without a limit there are no ratios") {
  Row row;
  row.dtrain = {1, 2};
  CHECK(row.Ratios().empty());
}

}  // namespace dtrain::bench
