// The area under the curve by buckets, against all pairs of rows.
#include "trainer/metrics/streaming_auc.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"

namespace dtrain {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Row {
  float logit;
  bool positive;
  double weight;
};

StreamingAuc Counted(const std::vector<Row>& rows) {
  StreamingAuc auc;
  for (const Row& row : rows) auc.Add(row.logit, row.positive, row.weight);
  return auc;
}

double AreaByPairs(const std::vector<Row>& rows) {
  double won = 0, pairs = 0;
  for (const Row& a : rows) {
    if (!a.positive) continue;
    for (const Row& b : rows) {
      if (b.positive) continue;
      pairs += a.weight * b.weight;
      won += a.weight * b.weight * (a.logit > b.logit ? 1 : a.logit == b.logit ? 0.5 : 0);
    }
  }
  return won / pairs;
}

// Rows of one of many kinds: wide or narrow logits, few or many of them, saturated ones, equal ones.
std::vector<Row> RandomRows(uint64_t seed) {
  const CounterRandom random(seed);
  uint64_t count = 0;
  const auto below = [&](uint64_t end) { return random.Below(count++, end); };
  const auto normal = [&] { return random.Normal(count++); };
  const double spread = std::pow(10.0, static_cast<double>(below(7)) - 4);
  const double shift = static_cast<double>(below(3)) - 1, step = below(2) == 0 ? 0 : spread / 4;
  const uint64_t weights = below(3);
  std::vector<Row> rows(2 + below(40));
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool positive = i == 0 || (i > 1 && below(4) == 0);
    double logit = spread * (normal() + (positive ? 0.5 : 0)) + shift;
    if (step > 0) logit = step * std::round(logit / step);
    if (below(20) == 0) logit = std::copysign(std::pow(10.0, static_cast<double>(below(38))), normal());
    if (below(50) == 0) logit = std::copysign(static_cast<double>(kInfinity), normal());
    if (below(50) == 0) logit = std::copysign(0.0, normal());
    const double weight = weights == 0   ? 1
                          : weights == 1 ? static_cast<double>(1 + below(5))
                                         : 1e-3 + random.Uniform(count++);
    rows[i] = {static_cast<float>(logit), positive, weight};
  }
  return rows;
}

TEST_CASE("streaming auc: the exact area is within the error that it tells, of 10,000 random sets") {
  double error = 0, difference = 0;
  for (uint64_t seed = 0; seed < 10000; ++seed) {
    const std::vector<Row> rows = RandomRows(seed);
    const auto area = Counted(rows).area();
    REQUIRE(area);
    const double off = std::abs(area->value - AreaByPairs(rows));
    if (off > area->error + 1e-12) {
      CAPTURE(seed);
      CHECK(off <= area->error);
    }
    error += area->error / 10000;
    difference += off / 10000;
  }
  // Sets were tried in which rows of both kinds share buckets.
  CHECK(error > 0.01);
  CHECK(difference > 0.001);
}

TEST_CASE("streaming auc: the error of many rows whose logits spread by 1 is below 0.0006") {
  const CounterRandom random(1);
  StreamingAuc auc;
  for (uint64_t i = 0; i < 100000; ++i) {
    const bool positive = random.Uniform(2 * i) < 0.25;
    auc.Add(static_cast<float>(random.Normal(2 * i + 1) + (positive ? 1 : 0)), positive);
  }
  CHECK(auc.area()->error < 0.0006);
  CHECK(auc.area()->value == doctest::Approx(0.7602).epsilon(0.01));  // of normals a deviation apart
}

TEST_CASE("streaming auc: equal logits are ties and no error, wherever they are") {
  for (const float logit : {0.0f, -0.0f, 3.7f, -1e30f, kInfinity}) {
    const auto area = Counted({{logit, true, 1}, {logit, false, 3}, {logit, true, 1}}).area();
    CHECK(area->value == 0.5);
    CHECK(area->error == 0);
  }
}

TEST_CASE(
    "streaming auc: saturated logits are told apart as far as buckets go, and the error says the rest") {
  const auto apart = Counted({{20, false, 1}, {40, true, 1}}).area();
  CHECK(apart->value == 1);
  CHECK(apart->error == 0);
  const auto together = Counted({{1e6f, false, 1}, {1e7f, true, 1}}).area();
  CHECK(together->value == 0.5);
  CHECK(together->error == 0.5);
  CHECK(Counted({{-kInfinity, false, 1}, {kInfinity, true, 1}}).area()->value == 1);
}

TEST_CASE("streaming auc: buckets are in the order of logits") {
  float last = -kInfinity;
  uint32_t bucket = StreamingAuc::BucketOf(last);
  CHECK(bucket == 0);
  for (float logit = -70000; logit < 70000; logit += std::max(0.001f, std::abs(logit) / 64)) {
    CHECK(StreamingAuc::BucketOf(logit) >= bucket);
    bucket = StreamingAuc::BucketOf(logit);
    CHECK(bucket < StreamingAuc::kBuckets);
  }
  CHECK(StreamingAuc::BucketOf(kInfinity) == StreamingAuc::kBuckets - 1);
}

TEST_CASE("streaming auc: there is none of one class, of no rows, or of a logit that is no number") {
  CHECK_FALSE(StreamingAuc().area());
  CHECK_FALSE(Counted({{1, true, 1}, {2, true, 1}}).area());
  CHECK_FALSE(Counted({{1, false, 1}}).area());
  CHECK_FALSE(Counted({{1, false, 1}, {2, true, 0}}).area());
  const StreamingAuc broken = Counted({{1, false, 1}, {2, true, 1}, {kNan, true, 1}});
  CHECK_FALSE(broken.area());
  CHECK(broken.has_nan());
  CHECK(Counted({{1, false, 1}, {2, true, 1}, {kNan, true, 0}}).area()->value == 1);
}

TEST_CASE("streaming auc: the cells of parts make the area of all, and impossible ones change nothing") {
  const std::vector<Row> rows = RandomRows(17);
  StreamingAuc parts[3], merged;
  for (size_t i = 0; i < rows.size(); ++i) parts[i % 3].Add(rows[i].logit, rows[i].positive, rows[i].weight);
  for (const StreamingAuc& part : parts) CHECK(merged.Merge(part.Cells()));
  CHECK(merged.area()->value == doctest::Approx(Counted(rows).area()->value).epsilon(1e-14));
  CHECK(merged.area()->error == doctest::Approx(Counted(rows).area()->error).epsilon(1e-14));

  const StreamingAuc::Cell good = Counted({{1, true, 1}}).Cells().at(0);
  const double value = merged.area()->value;
  const auto spoiled = [&](auto spoil) {
    StreamingAuc::Cell cell = good;
    spoil(&cell);
    return merged.Merge({good, cell});
  };
  CHECK_FALSE(spoiled([](auto* cell) { cell->bucket = StreamingAuc::kBuckets; }));
  CHECK_FALSE(spoiled([](auto* cell) { cell->bucket = 0; }));
  CHECK_FALSE(spoiled([](auto* cell) { cell->positive = -1; }));
  CHECK_FALSE(spoiled([](auto* cell) { cell->negative = std::nan(""); }));
  CHECK_FALSE(spoiled([](auto* cell) { cell->positive = 0; }));
  CHECK_FALSE(spoiled([](auto* cell) { cell->low = kNan; }));
  CHECK_FALSE(spoiled([](auto* cell) { cell->high = 5; }));
  CHECK(merged.area()->value == value);
}

}  // namespace
}  // namespace dtrain
