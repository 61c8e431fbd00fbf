// Log loss and calibration against the plain formulas.
#include "trainer/metrics/probability_figures.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "trainer/metrics/metrics.h"

namespace dtrain {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE(
    "log loss: of one output is the negative logarithm of the sigmoid, also where that rounds to 0 or 1") {
  for (const float z : {-3.0f, -0.5f, 0.0f, 0.25f, 4.0f}) {
    const double p = 1 / (1 + std::exp(-static_cast<double>(z)));
    CHECK(LogLossOf(&z, 1, 1) == doctest::Approx(-std::log(p)).epsilon(1e-12));
    CHECK(LogLossOf(&z, 1, 0) == doctest::Approx(-std::log(1 - p)).epsilon(1e-12));
  }
  const float large = 100, huge = 1e30f;
  CHECK(LogLossOf(&large, 1, 0) == doctest::Approx(100));
  CHECK(LogLossOf(&large, 1, 1) == doctest::Approx(std::exp(-100.0)).epsilon(1e-12));
  CHECK(LogLossOf(&huge, 1, 0) == doctest::Approx(1e30));
  CHECK(LogLossOf(&huge, 1, 1) == 0);
}

TEST_CASE("log loss: of several outputs is that of the softmax, and two are as their difference") {
  const float logits[] = {1, -2, 0.5f};
  const double sum = std::exp(1) + std::exp(-2) + std::exp(0.5);
  for (int k = 0; k < 3; ++k) CHECK(LogLossOf(logits, 3, k) == doctest::Approx(std::log(sum) - logits[k]));
  for (const float z : {-200.0f, -1.0f, 0.0f, 30.0f, 200.0f}) {
    const float two[] = {0, z};
    for (int k = 0; k < 2; ++k)
      CHECK(LogLossOf(two, 2, k) == doctest::Approx(LogLossOf(&z, 1, k)).epsilon(1e-12));
  }
}

TEST_CASE("probabilities: figures are means by weight, of two outputs those of their difference") {
  const CounterRandom random(1);
  ProbabilityFigures all(1), two(2);
  double weights = 0, loss = 0, predicted = 0, observed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const float z = static_cast<float>(random.Normal(3 * i));
    const int32_t label = random.Uniform(3 * i + 1) < 0.3 ? 1 : 0;
    const double weight = static_cast<double>(random.Below(3 * i + 2, 4)) / 2;
    all.Add(&z, label, weight);
    const float both[] = {1, 1 + z};
    two.Add(both, label, weight);
    const double p = 1 / (1 + std::exp(-static_cast<double>(z)));
    weights += weight;
    loss -= weight * std::log(label == 1 ? p : 1 - p);
    predicted += weight * p;
    observed += weight * label;
  }
  CHECK(*all.log_loss() == doctest::Approx(loss / weights).epsilon(1e-12));
  CHECK(*all.calibration() == doctest::Approx(predicted / observed).epsilon(1e-12));
  CHECK(*two.log_loss() == doctest::Approx(*all.log_loss()).epsilon(1e-6));
  CHECK(*two.calibration() == doctest::Approx(*all.calibration()).epsilon(1e-6));
}

TEST_CASE("probabilities: the shares of the classes, and the log loss of a model that says no more") {
  ProbabilityFigures figures(3), nothing(3);
  const float z[] = {1, 2, 3};
  nothing.Add(z, 1, 0);
  CHECK(nothing.Shares().empty());
  CHECK_FALSE(nothing.shares_log_loss());
  figures.Add(z, 0, 1);
  figures.Add(z, 1, 2);
  figures.Add(z, 1, 1);
  CHECK(figures.Shares() == std::vector<double>{0.25, 0.75, 0});
  CHECK(*figures.shares_log_loss() == doctest::Approx(-0.25 * std::log(0.25) - 0.75 * std::log(0.75)));
}

TEST_CASE("probabilities: a row of weight 2 counts as the row twice, and one of weight 0 not at all") {
  ProbabilityFigures weighted(1), twice(1);
  const float a = 0.5f, b = -2, nan = kNan;
  weighted.Add(&a, 1, 2);
  weighted.Add(&b, 0, 1);
  weighted.Add(&nan, 0, 0);
  for (int i = 0; i < 2; ++i) twice.Add(&a, 1);
  twice.Add(&b, 0);
  CHECK(*weighted.log_loss() == doctest::Approx(*twice.log_loss()).epsilon(1e-15));
  CHECK(*weighted.calibration() == doctest::Approx(*twice.calibration()).epsilon(1e-15));
}

TEST_CASE("probabilities: what the rows do not define is unset") {
  ProbabilityFigures none(1), zeros(1), broken(1), infinite(1), several(3);
  CHECK_FALSE(none.log_loss());
  CHECK_FALSE(none.calibration());
  const float z = 1, bad = kNan, endless = kInfinity, three[] = {1, 2, 3};
  zeros.Add(&z, 0);
  CHECK(zeros.log_loss());
  CHECK_FALSE(zeros.calibration());
  broken.Add(&z, 1);
  broken.Add(&bad, 0);
  CHECK_FALSE(broken.log_loss());
  CHECK_FALSE(broken.calibration());
  infinite.Add(&endless, 0);
  CHECK_FALSE(infinite.log_loss());
  several.Add(three, 2);
  CHECK(several.log_loss());
  CHECK_FALSE(several.calibration());
}

TEST_CASE("figures: have the log loss of a batch with the weights of its rows") {
  const float logits[] = {1, -1, 3}, weights[] = {1, 2, 0};
  const int32_t labels[] = {1, 1, 0};
  Batch batch;
  batch.rows = 3;
  batch.labels = labels;
  batch.weights = weights;
  Figures figures(1, true);
  figures.Add(batch, logits);
  const double expected = (LogLossOf(&logits[0], 1, 1) + 2 * LogLossOf(&logits[1], 1, 1)) / 3;
  CHECK(*figures.probabilities.log_loss() == doctest::Approx(expected).epsilon(1e-15));
  CHECK(figures.probabilities.Shares()[1] == 1);
  batch.weights = nullptr;
  Figures plain(1, true);
  plain.Add(batch, logits);
  CHECK(plain.probabilities.Shares()[1] == doctest::Approx(2.0 / 3));
}

TEST_CASE("reliability: a row counts in the bin of its probability, also at 0 and 1, and no number in none") {
  Reliability reliability;
  reliability.Add(0.2, 1, 2);  // 0.55
  reliability.Add(0.3, 0);     // 0.57
  reliability.Add(-kInfinity, 0);
  reliability.Add(kInfinity, 1);
  reliability.Add(kNan, 1);
  const auto& bins = reliability.bins();
  const size_t half = 8, last = bins.size() - 1;
  REQUIRE(Reliability::kFrom[half] == 0.5);
  CHECK(bins[half].weight == 3);
  CHECK(bins[half].observed == 2);
  CHECK(bins[half].predicted == doctest::Approx(2 / (1 + std::exp(-0.2)) + 1 / (1 + std::exp(-0.3))));
  CHECK(bins[0].weight == 1);
  CHECK(bins[0].observed == 0);
  CHECK(bins[last].weight == 1);
  CHECK(bins[last].predicted == 1);
  double all = 0;
  for (const Reliability::Bin& bin : bins) all += bin.weight;
  CHECK(all == 5);
}

TEST_CASE("reliability: precision and recall of each threshold are those of a plain count") {
  Reliability reliability;
  const CounterRandom random(2);
  std::vector<std::pair<double, int32_t>> rows;
  for (uint64_t i = 0; i < 500; ++i) {
    const double p = 0.6 * random.Uniform(2 * i);
    rows.emplace_back(p, random.Uniform(2 * i + 1) < p ? 1 : 0);
    reliability.Add(std::log(p / (1 - p)), rows.back().second);
  }
  const std::vector<ThresholdFigures> thresholds = reliability.Thresholds();
  CHECK(thresholds.size() == 8);  // 0.01 to 0.5: no row is above 0.6
  for (const ThresholdFigures& each : thresholds) {
    double taken = 0, right = 0, all = 0;
    for (const auto& [p, label] : rows) {
      all += label;
      taken += p >= each.from ? 1 : 0;
      right += p >= each.from ? label : 0;
    }
    CHECK(each.share == doctest::Approx(taken / 500));
    CHECK(each.precision == doctest::Approx(right / taken));
    CHECK(each.recall == doctest::Approx(right / all));
  }
  Reliability none;
  none.Add(1, 0);
  CHECK(none.Thresholds().empty());
}

}  // namespace
}  // namespace dtrain
