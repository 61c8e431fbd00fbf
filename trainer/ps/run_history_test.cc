#include "trainer/ps/run_history.h"

#include <doctest/doctest.h>

#include <cmath>

namespace dtrain {
namespace {

TEST_CASE("patience: it ends at so many evaluations in a row without a smaller loss, and knows the best") {
  Patience patience(2);
  CHECK_FALSE(patience.Exhausted(0.5, 10));
  CHECK_FALSE(patience.Exhausted(0.6, 20));
  CHECK_FALSE(patience.Exhausted(0.4, 30));
  CHECK_FALSE(patience.Exhausted(0.4, 40));  // not smaller
  CHECK(patience.Exhausted(0.45, 50));
  CHECK(patience.best() == 0.4);
  CHECK(patience.best_step() == 30);
  CHECK(patience.in_vain() == 2);
}

TEST_CASE("patience: of an auc a larger one is better, and what was counted of the loss says nothing of it") {
  Patience patience(2, EvalMetric::kAuc);
  patience.GoOn({EvalMetric::kLoss, 0.9, 5, 1}, 7);
  CHECK_FALSE(patience.counted());
  CHECK_FALSE(patience.Exhausted(0.5, 10));
  CHECK_FALSE(patience.Exhausted(0.7, 20));
  CHECK_FALSE(patience.Exhausted(0.6, 30));
  CHECK(patience.Exhausted(0.7, 40));
  CHECK(patience.best() == 0.7);
  CHECK(patience.best_step() == 20);
  Patience after(2, EvalMetric::kAuc);
  after.GoOn(*patience.counted(), 40);
  CHECK(after.best() == 0.7);
  CHECK(after.Exhausted(0.6, 50));
}

TEST_CASE("patience: 1 ends at the first that is not better") {
  Patience patience(1);
  CHECK_FALSE(patience.Exhausted(0.5, 1));
  CHECK(patience.Exhausted(0.5, 2));
}

TEST_CASE("patience: a loss that is not finite is never better, and 0 has no end") {
  Patience patience(0);
  for (int64_t step = 1; step < 50; ++step) CHECK_FALSE(patience.Exhausted(std::nan(""), step));
  Patience two(2);
  CHECK_FALSE(two.Exhausted(std::nan(""), 1));
  CHECK(two.Exhausted(INFINITY, 2));
}

TEST_CASE("patience: what was evaluated behind the step that a run goes back to does not count") {
  Patience patience(2);
  CHECK_FALSE(patience.Exhausted(0.5, 10));
  CHECK_FALSE(patience.Exhausted(0.6, 20));
  CHECK_FALSE(patience.Exhausted(0.1, 30));
  patience.GoBackTo(29);
  CHECK(patience.best() == 0.5);
  CHECK(patience.best_step() == 10);
  CHECK(patience.in_vain() == 1);
  CHECK(patience.Exhausted(0.5, 30));
}

TEST_CASE("patience: what a checkpoint has counted goes on") {
  Patience before(2);
  CHECK_FALSE(before.counted().has_value());
  before.Exhausted(0.5, 10);
  before.Exhausted(0.6, 20);
  Patience after(2);
  after.GoOn(before.counted().value(), 25);
  after.GoBackTo(25);
  CHECK(after.best() == 0.5);
  CHECK(after.best_step() == 10);
  CHECK(after.Exhausted(0.55, 30));
  Patience endless(0);
  endless.Exhausted(0.5, 10);
  CHECK(endless.counted()->best == 0.5);  // for dtrain status
}

}  // namespace
}  // namespace dtrain
