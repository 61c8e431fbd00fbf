// When a line of progressive loss is due, and what it says.
#include "trainer/leader/progressive_loss.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("progressive loss: lines are due at 1, 2, 4, 8, ... rows") {
  ProgressiveLoss progress;
  LossSums total;
  std::vector<int64_t> due;
  for (int i = 0; i < 100; ++i) {
    total += {1, 1, 0.5};
    if (progress.Count(1)) due.push_back(progress.TakeLine(total).rows);
  }
  CHECK(due == std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64});
  CHECK(progress.rows_since_line() == 36);
  CHECK(progress.lines() == 7);
}

TEST_CASE("progressive loss: a batch that passes several doublings makes one line, at its own rows") {
  ProgressiveLoss progress;
  REQUIRE(progress.Count(100));
  CHECK(progress.TakeLine({100, 100, 60}).rows == 100);
  CHECK_FALSE(progress.Count(20));
  CHECK(progress.Count(20));  // 140 rows, 128 or more
}

TEST_CASE("progressive loss: a line has the means since the begin and since the last line, by weight") {
  ProgressiveLoss progress;
  ProgressLine line = progress.TakeLine({2, 3, 2.5});
  CHECK(line.rows == 2);
  CHECK(line.weight == 3);
  CHECK(*line.average == doctest::Approx(2.5 / 3));
  CHECK(*line.since_last == doctest::Approx(2.5 / 3));
  line = progress.TakeLine({4, 4, 2.75});
  CHECK(*line.average == doctest::Approx(2.75 / 4));
  CHECK(*line.since_last == doctest::Approx(0.25));
}

TEST_CASE("progressive loss: rows without weight have no mean") {
  const ProgressLine line = ProgressiveLoss().TakeLine({3, 0, 0});
  CHECK_FALSE(line.average);
  CHECK_FALSE(line.since_last);
  CHECK(ProgressText(line) == "-        -                   3            0.0");
}

TEST_CASE("progressive loss: a run that goes on has its first line at the next doubling, since there") {
  ProgressiveLoss progress;
  progress.BeginAt({10, 10, 5});
  CHECK(progress.lines() == 0);
  CHECK(progress.rows_since_line() == 0);
  CHECK_FALSE(progress.Count(5));
  REQUIRE(progress.Count(1));
  const ProgressLine line = progress.TakeLine({16, 16, 6.5});
  CHECK(*line.average == doctest::Approx(6.5 / 16));
  CHECK(*line.since_last == doctest::Approx(0.25));
}

TEST_CASE("progressive loss: the largest count ends the doubling") {
  ProgressiveLoss progress;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  REQUIRE(progress.Count(kMax));
  CHECK(progress.TakeLine({kMax, 1, 1}).rows == kMax);
}

TEST_CASE("progressive loss: lines are in Vowpal Wabbit's columns") {
  CHECK(std::string(kProgressHeader[0]) == "average  since         example        example");
  CHECK(std::string(kProgressHeader[1]) == "loss     last          counter         weight");
  ProgressiveLoss progress;
  CHECK(ProgressText(progress.TakeLine({1, 1, 0.693147})) == "0.693147 0.693147            1            1.0");
  CHECK(ProgressText(progress.TakeLine({3161, 4755.5, 3412.393147})) ==
        "0.717568 0.717573         3161         4755.5");
}

}  // namespace
}  // namespace dtrain
