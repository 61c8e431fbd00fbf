// When a line of progressive loss is due, and what it says.
#include "trainer/metrics/progressive_loss.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace dtrain {
namespace {

LossSums SumsOf(int64_t rows, double weight, double loss) { return {rows, weight, loss}; }

TEST_CASE("progressive loss: lines are due at 1, 2, 4, 8, ... rows") {
  ProgressiveLoss progress;
  CHECK_FALSE(progress.IsDue());
  std::vector<int64_t> due;
  for (int i = 0; i < 100; ++i) {
    LossSums row;
    row.Add(0.5);
    progress.Add(0, row);
    if (progress.IsDue()) due.push_back(progress.TakeLine().rows);
  }
  CHECK(due == std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64});
}

TEST_CASE(
    "progressive loss: a batch that passes several doublings makes one line, at its own number of rows") {
  ProgressiveLoss progress;
  progress.Add(0, SumsOf(100, 100, 60));
  REQUIRE(progress.IsDue());
  CHECK(progress.TakeLine().rows == 100);
  progress.Add(0, SumsOf(20, 20, 10));
  CHECK_FALSE(progress.IsDue());
  progress.Add(0, SumsOf(20, 20, 10));
  CHECK(progress.IsDue());  // 140 rows, 128 or more
}

TEST_CASE("progressive loss: a line has the means since the begin and since the last line, by weight") {
  ProgressiveLoss progress;
  LossSums rows;
  rows.Add(1, 2);
  rows.Add(0.5);
  progress.Add(0, rows);
  ProgressLine line = progress.TakeLine();
  CHECK(line.rows == 2);
  CHECK(line.weight == 3);
  CHECK(*line.average == doctest::Approx(2.5 / 3));
  CHECK(*line.since_last == doctest::Approx(2.5 / 3));
  progress.Add(0, SumsOf(2, 1, 0.25));
  line = progress.TakeLine();
  CHECK(*line.average == doctest::Approx(2.75 / 4));
  CHECK(*line.since_last == doctest::Approx(0.25));
}

TEST_CASE("progressive loss: rows without weight have no mean") {
  ProgressiveLoss progress;
  progress.Add(0, SumsOf(3, 0, 0));
  const ProgressLine line = progress.TakeLine();
  CHECK_FALSE(line.average);
  CHECK_FALSE(line.since_last);
  CHECK(ProgressText(line) == "-        -                   3            0.0");
}

TEST_CASE("progressive loss: the sums of several workers are one, whatever the order of their messages") {
  ProgressiveLoss forth(3), back(3);
  const LossSums sums[] = {SumsOf(3, 3, 0.1), SumsOf(4, 4, 0.7), SumsOf(5, 5, 1e-9)};
  for (int worker = 0; worker < 3; ++worker) forth.Set(worker, sums[worker]);
  for (int worker = 2; worker >= 0; --worker) back.Set(worker, sums[worker]);
  back.Set(1, sums[1]);  // a message that comes twice
  CHECK(forth.Total().rows == 12);
  CHECK(back.Total().rows == 12);
  CHECK(back.Total().loss == forth.Total().loss);
  CHECK(forth.IsDue());
  CHECK(*forth.TakeLine().average == doctest::Approx(0.8 / 12));
}

TEST_CASE("progressive loss: a worker that begins anew takes its rows back, and the next line says so") {
  ProgressiveLoss progress(2);
  progress.Set(0, SumsOf(10, 10, 5));
  progress.Set(1, SumsOf(6, 6, 3));
  CHECK(progress.TakeLine().rows == 16);
  progress.Set(1, SumsOf(0, 0, 0));
  CHECK_FALSE(progress.IsDue());
  const ProgressLine line = progress.TakeLine();
  CHECK(line.rows == 10);
  CHECK_FALSE(line.since_last);
  progress.Set(1, SumsOf(30, 30, 15));
  CHECK(progress.IsDue());
}

TEST_CASE("progressive loss: the largest count ends the doubling") {
  ProgressiveLoss progress;
  progress.Add(0, SumsOf(std::numeric_limits<int64_t>::max(), 1, 1));
  CHECK(progress.TakeLine().rows == std::numeric_limits<int64_t>::max());
}

TEST_CASE("progressive loss: lines are in Vowpal Wabbit's columns") {
  ProgressiveLoss progress;
  progress.Add(0, SumsOf(1, 1, 0.693147));
  CHECK(std::string(kProgressHeader) + "\n" + ProgressText(progress.TakeLine()) ==
        "average  since         example        example\n"
        "loss     last          counter         weight\n"
        "0.693147 0.693147            1            1.0");
  progress.Add(0, SumsOf(3160, 4754.5, 3411.7));
  CHECK(ProgressText(progress.TakeLine()) == "0.717568 0.717573         3161         4755.5");
}

}  // namespace
}  // namespace dtrain
