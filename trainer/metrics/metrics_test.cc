// The figures of evaluations against plain loops over all pairs and rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/metrics/metrics.h"

namespace dtrain {
namespace {

// Few scores, so that there are ties; a fixed linear congruence in place of a generator.
struct Rows {
  std::vector<float> scores;
  std::vector<int32_t> labels;

  Rows(int count, uint32_t classes, uint32_t different) {
    uint32_t state = count * 7 + classes;
    const auto next = [&](uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
    for (int i = 0; i < count; ++i) {
      scores.push_back(static_cast<float>(next(different)) / 4 - 1);
      labels.push_back(static_cast<int32_t>(next(classes)));
    }
  }
};

double AreaByPairs(const std::vector<float>& scores, const std::vector<int32_t>& labels, int32_t positive) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t k = 0; k < scores.size(); ++k) {
      if (labels[i] != positive || labels[k] == positive) continue;
      pairs += 1;
      won += scores[i] > scores[k] ? 1 : scores[i] == scores[k] ? 0.5 : 0;
    }
  }
  return won / pairs;
}

TEST_CASE("auc: is the part of all pairs that are in order, a tie counting half") {
  for (const uint32_t different : {2u, 9u, 1000u}) {
    const Rows rows(211, 2, different);
    const auto area = RankingOf(rows.scores, rows.labels, 1).auc;
    REQUIRE(area);
    CHECK(*area == doctest::Approx(AreaByPairs(rows.scores, rows.labels, 1)).epsilon(1e-12));
  }
}

TEST_CASE("auc: groups are ranked each by itself, and one of a single class has none") {
  const Rows rows(300, 2, 9);
  std::vector<uint32_t> group_of_row;
  for (uint32_t row = 0; row < 300; ++row) {
    group_of_row.push_back(rows.labels[row] == 0 && row % 11 == 0 ? 3 : row % 3);
  }
  ScoreTable table(1);
  table.Add({rows.scores.data(), 300, 1}, rows.labels);
  const std::vector<GroupRanking> groups = table.RankGroups(group_of_row, 4);
  REQUIRE(groups.size() == 4);
  for (uint32_t group = 0; group < 4; ++group) {
    std::vector<float> scores;
    std::vector<int32_t> labels;
    for (size_t row = 0; row < 300; ++row) {
      if (group_of_row[row] != group) continue;
      scores.push_back(rows.scores[row]);
      labels.push_back(rows.labels[row]);
    }
    CHECK(groups[group].rows == static_cast<int64_t>(labels.size()));
    CHECK(groups[group].weight == static_cast<double>(labels.size()));
    CHECK(groups[group].positives == std::count(labels.begin(), labels.end(), 1));
    CHECK(groups[group].auc.has_value() == (group < 3));
    if (group < 3) {
      CHECK(*groups[group].auc == doctest::Approx(AreaByPairs(scores, labels, 1)).epsilon(1e-12));
    }
  }
  CHECK(ScoreTable(3).RankGroups(std::vector<uint32_t>(), 1).empty());
}

TEST_CASE("auc: in a group a row of weight 3 counts as three rows") {
  const std::vector<float> scores{0.1f, 0.4f, 0.35f, 0.8f};
  const std::vector<int32_t> labels{0, 0, 1, 1};
  const std::vector<float> weights{1, 3, 1, 1};
  ScoreTable weighted(1), repeated(1);
  weighted.Add({scores.data(), 4, 1}, labels, weights.data());
  const std::vector<float> more{0.1f, 0.4f, 0.4f, 0.4f, 0.35f, 0.8f};
  repeated.Add({more.data(), 6, 1}, std::vector<int32_t>{0, 0, 0, 0, 1, 1});
  const GroupRanking one = weighted.RankGroups(std::vector<uint32_t>(4), 1)[0];
  CHECK(one.weight == 6);
  CHECK(*one.auc == *repeated.RankGroups(std::vector<uint32_t>(6), 1)[0].auc);
}

// The definition: recall and precision at every score, and the area below the steps.
double AveragePrecisionBySteps(const std::vector<float>& scores, const std::vector<int32_t>& labels) {
  std::vector<float> cuts = scores;
  std::sort(cuts.begin(), cuts.end(), std::greater<>());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const auto all = static_cast<double>(std::count(labels.begin(), labels.end(), 1));
  double area = 0, before = 0;
  for (const float cut : cuts) {
    double taken = 0, right = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] < cut) continue;
      taken += 1;
      right += labels[i] == 1 ? 1 : 0;
    }
    area += (right / all - before) * (right / taken);
    before = right / all;
  }
  return area;
}

TEST_CASE("average precision: is the area below the steps of precision over recall") {
  for (const uint32_t different : {2u, 9u, 1000u}) {
    const Rows rows(211, 2, different);
    CHECK(*RankingOf(rows.scores, rows.labels, 1).average_precision ==
          doctest::Approx(AveragePrecisionBySteps(rows.scores, rows.labels)).epsilon(1e-12));
  }
  const std::vector<float> same(10, 0.5f);
  const std::vector<int32_t> labels{1, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  CHECK(*RankingOf(same, labels, 1).average_precision == doctest::Approx(0.2));  // chance: the share
}

TEST_CASE("auc: a row of weight 3 counts as three rows, and one of weight 0 not at all") {
  const Rows rows(211, 3, 9);
  std::vector<float> logits, weights, repeated_logits;
  std::vector<int32_t> repeated;
  for (size_t i = 0; i < rows.scores.size(); ++i) {
    const std::vector<float> own{rows.scores[i], rows.scores[(i * 7) % 211], rows.scores[(i * 11) % 211]};
    logits.insert(logits.end(), own.begin(), own.end());
    weights.push_back(static_cast<float>(i % 4));
    for (size_t k = 0; k < i % 4; ++k) {
      repeated_logits.insert(repeated_logits.end(), own.begin(), own.end());
      repeated.push_back(rows.labels[i]);
    }
  }
  const auto count = static_cast<int64_t>(repeated.size());
  ScoreTable weighted(3), all(3);
  weighted.Add({logits.data(), 100, 3}, {rows.labels.data(), 100}, weights.data());
  weighted.Add({logits.data() + 300, 111, 3}, {rows.labels.data() + 100, 111}, weights.data() + 100);
  all.Add({repeated_logits.data(), count, 3}, {repeated.data(), count});
  REQUIRE(all.Rank().auc);
  CHECK(*weighted.Rank().auc == doctest::Approx(*all.Rank().auc).epsilon(1e-12));
  CHECK(*weighted.Rank().average_precision == doctest::Approx(*all.Rank().average_precision).epsilon(1e-12));
}

TEST_CASE("auc: without rows of both kinds there is none") {
  const std::vector<float> scores{1, 2};
  CHECK_FALSE(RankingOf(scores, std::vector<int32_t>{1, 1}, 1).auc);
  CHECK_FALSE(RankingOf(scores, std::vector<int32_t>{0, 0}, 1).average_precision);
  CHECK_FALSE(RankingOf(std::vector<float>(), std::vector<int32_t>(), 1).auc);
}

TEST_CASE("auc: of several classes is the mean of each against the others, where softmax is saturated too") {
  const Rows labels(90, 3, 2);
  std::vector<float> logits;
  for (const float score : Rows(270, 2, 7).scores) logits.push_back(score * 40);
  ScoreTable table(3);
  table.Add({logits.data(), 40, 3}, {labels.labels.data(), 40});
  table.Add({logits.data() + 120, 50, 3}, {labels.labels.data() + 40, 50});
  double sum = 0;
  for (int32_t k = 0; k < 3; ++k) {
    std::vector<float> scores;  // log(p / (1 - p)), which ranks as p does
    for (int row = 0; row < 90; ++row) {
      const float* z = logits.data() + row * 3;
      const double a = z[(k + 1) % 3], b = z[(k + 2) % 3], most = std::max(a, b), least = std::min(a, b);
      scores.push_back(static_cast<float>(z[k] - most - std::log1p(std::exp(least - most))));
    }
    sum += AreaByPairs(scores, labels.labels, k);
  }
  REQUIRE(table.Rank().auc);
  CHECK(*table.Rank().auc == doctest::Approx(sum / 3).epsilon(1e-9));
}

TEST_CASE("auc: of several classes one without rows is left out of the mean") {
  const std::vector<float> logits{2, 1, 0, 0, 2, 1, 1, 1.5f, 2};
  const std::vector<int32_t> labels{0, 1, 1};  // nothing is of class 2
  ScoreTable table(3);
  table.Add({logits.data(), 3, 3}, {labels.data(), 3});
  REQUIRE(table.Rank().auc);
  CHECK(*table.Rank().auc == 1);
}

TEST_CASE("auc: two outputs of softmax rank as their difference does, however far apart they are") {
  const Rows rows(200, 2, 1000);
  ScoreTable two(2), one(1);
  std::vector<float> logits, differences;
  for (const float score : rows.scores) {
    logits.insert(logits.end(), {-20 * score, 20 * score});
    differences.push_back(40 * score);
  }
  two.Add({logits.data(), 200, 2}, {rows.labels.data(), 200});
  one.Add({differences.data(), 200, 1}, {rows.labels.data(), 200});
  REQUIRE(two.Rank().auc);
  CHECK(*two.Rank().auc == doctest::Approx(*one.Rank().auc).epsilon(1e-12));
}

std::string WhyNone(const std::vector<float>& outputs, int64_t rows, int64_t most = ScoreTable::kMaxScores) {
  ScoreTable table(static_cast<int64_t>(outputs.size()) / rows, most);
  const std::vector<int32_t> labels{0, 1};
  table.Add({outputs.data(), rows, static_cast<int64_t>(outputs.size()) / rows}, {labels.data(), rows});
  CHECK(table.Rank().auc.has_value() == (*table.why_none() == '\0'));
  return table.why_none();
}

TEST_CASE("auc: too many classes or rows, and outputs that are not finite, have none and say why") {
  CHECK_FALSE(ScoreTable(65).Rank().auc);
  CHECK(WhyNone({1, std::nanf("")}, 2) == "an output is not finite");
  CHECK(WhyNone({1, 2, INFINITY, INFINITY}, 2) == "an output is not finite");
  CHECK(WhyNone({1, -INFINITY, 2, 1}, 2) == "an output is not finite");
  CHECK(WhyNone({3e38f, -3e38f, -3e38f, 3e38f}, 2) == "");
  CHECK(WhyNone({1, 2, 3, 4}, 2, 2) == "");
  CHECK(WhyNone({1, 2, 3, 4}, 2, 1) == "too many rows");
}

TEST_CASE("auc: between two classes there is time for something else") {
  const Rows rows(60, 3, 40);
  ScoreTable table(3);
  table.Add({rows.scores.data(), 20, 3}, {rows.labels.data(), 20});
  int breaths = 0;
  CHECK(table.Rank([&] { ++breaths; }).auc);
  CHECK(breaths == 3);
}

TEST_CASE("confusion: counts, precision, recall and F1 are those of a plain count") {
  const Rows rows(300, 4, 2);
  const Rows taken(300, 3, 5);  // nobody is taken for class 3
  Confusion confusion(4);
  std::vector<std::vector<int64_t>> counts(4, std::vector<int64_t>(4));
  for (size_t i = 0; i < rows.labels.size(); ++i) {
    confusion.Add(rows.labels[i], taken.labels[i]);
    ++counts[static_cast<size_t>(rows.labels[i])][static_cast<size_t>(taken.labels[i])];
  }
  for (size_t k = 0; k < 4; ++k) {
    double support = 0, predicted = 0;
    for (size_t other = 0; other < 4; ++other) {
      CHECK(confusion.at(static_cast<int64_t>(k), static_cast<int64_t>(other)) == counts[k][other]);
      support += static_cast<double>(counts[k][other]);
      predicted += static_cast<double>(counts[other][k]);
    }
    const ClassFigures& figures = confusion.classes()[k];
    const auto hit = static_cast<double>(counts[k][k]);
    CHECK(figures.recall().value() == doctest::Approx(hit / support));
    CHECK(figures.f1().value() == doctest::Approx(2 * hit / (support + predicted)));
    CHECK(figures.precision().has_value() == (k < 3));
    if (k < 3) CHECK(figures.precision().value() == doctest::Approx(hit / predicted));
  }
}

TEST_CASE("regression: errors and R squared of targets far from zero, beside those of the mean") {
  const std::vector<float> targets{1e6f, 1e6f + 1, 1e6f + 2, 1e6f + 5};
  const std::vector<double> values{1e6 + 0.5, 1e6 + 1, 1e6 + 1.5, 1e6 + 4};
  Regression regression;
  for (size_t i = 0; i < 4; ++i) regression.Add(values[i], targets[i]);
  CHECK(regression.rmse().value() == doctest::Approx(std::sqrt(1.5 / 4)));
  CHECK(regression.mae().value() == doctest::Approx(0.5));
  CHECK(regression.r_squared().value() == doctest::Approx(1 - 1.5 / 14));
  CHECK(regression.mean_rmse().value() == doctest::Approx(std::sqrt(14.0 / 4)));
  CHECK(regression.mean_mae().value() == doctest::Approx(1.5));  // about 2: 2, 1, 0 and 3
  Regression constant;
  constant.Add(1, 2);
  CHECK_FALSE(constant.r_squared());
}

TEST_CASE("regression: a row of weight 3 counts as three rows, one of weight 0 not at all") {
  Regression weighted, repeated, short_of_room(1);
  for (int i = 0; i < 20; ++i) {
    const auto target = static_cast<float>(i * i % 7);
    weighted.Add(i % 3, target, i % 4);
    for (int k = 0; k < i % 4; ++k) repeated.Add(i % 3, target);
    short_of_room.Add(i % 3, target);
  }
  CHECK(*weighted.rmse() == doctest::Approx(*repeated.rmse()).epsilon(1e-12));
  CHECK(*weighted.mae() == doctest::Approx(*repeated.mae()).epsilon(1e-12));
  CHECK(*weighted.r_squared() == doctest::Approx(*repeated.r_squared()).epsilon(1e-12));
  CHECK(*weighted.mean_rmse() == doctest::Approx(*repeated.mean_rmse()).epsilon(1e-12));
  CHECK(*weighted.mean_mae() == doctest::Approx(*repeated.mean_mae()).epsilon(1e-12));
  CHECK(short_of_room.mean_rmse());
  CHECK_FALSE(short_of_room.mean_mae());
  Regression nothing;
  nothing.Add(1, 2, 0);
  CHECK_FALSE(nothing.rmse());
  CHECK_FALSE(nothing.mae());
  CHECK_FALSE(nothing.mean_mae());
}

// `outputs`: before the link.
Regression Of(const gpu::PointLoss& loss, const std::vector<double>& outputs,
              const std::vector<float>& targets, const std::vector<double>& weights = {}) {
  Regression regression(ScoreTable::kMaxScores, loss);
  for (size_t i = 0; i < targets.size(); ++i) {
    regression.Add(outputs[i], targets[i], weights.empty() ? 1 : weights[i]);
  }
  return regression;
}

TEST_CASE("regression: of a log link predictions are exponentials, and deviances those of scikit-learn") {
  const std::vector<float> targets{1, 2, 4, 0.5};
  const std::vector<double> outputs{std::log(1.0), std::log(1.5), std::log(3.0), std::log(1.0)};
  CHECK(*Of({gpu::LossKind::kPoisson}, outputs, targets).mae() == doctest::Approx(0.5));
  // sklearn.metrics: mean_tweedie_deviance with power 1, 2 and 1.5, and d2_tweedie_score.
  const struct {
    gpu::PointLoss loss;
    double deviance, d2;
  } cases[] = {{{gpu::LossKind::kPoisson}, 0.18975942221535602, 0.7970849096314302},
               {{gpu::LossKind::kGamma}, 0.14222485116152495, 0.7478596339207118},
               {{gpu::LossKind::kTweedie, 1.5}, 0.1565492304551357, 0.780068938859295}};
  for (const auto& each : cases) {
    const Regression regression = Of(each.loss, outputs, targets);
    CHECK(*regression.deviance() == doctest::Approx(each.deviance).epsilon(1e-9));
    CHECK(1 - *regression.deviance() / *regression.base_deviance() == doctest::Approx(each.d2).epsilon(1e-9));
    CHECK_FALSE(regression.share_below());
  }
  CHECK_FALSE(Of({}, outputs, targets).deviance());
}

TEST_CASE("regression: a quantile beside the quantile of the targets, and its share below") {
  const std::vector<float> targets{1, 2, 3, 10};
  const Regression median = Of({gpu::LossKind::kAbsolute}, {1, 1, 1, 1}, targets);
  CHECK(*median.deviance() == doctest::Approx(3));
  CHECK(*median.base_deviance() == doctest::Approx(2.5));
  const Regression upper = Of({gpu::LossKind::kQuantile, 0.75}, {1, 2, 2, 2}, targets);
  CHECK(*upper.share_below() == 0.5);
  CHECK(*upper.deviance() == doctest::Approx((0.75 * 1 + 0.75 * 8) / 4));
  CHECK(*upper.base_deviance() == doctest::Approx((0.25 * 2 + 0.25 * 1 + 0.75 * 7) / 4));
  // The best constant of huber: 2 here, from where three small slopes hold the large one.
  const Regression huber = Of({gpu::LossKind::kHuber, 1}, {2, 2, 2, 2}, {1.5f, 1.5f, 2, 10});
  CHECK(*huber.deviance() == doctest::Approx(*huber.base_deviance()));
}

TEST_CASE("regression: with a loss a row of weight 3 counts as three rows, and one of weight 0 not at all") {
  for (const gpu::LossRow& row : gpu::LossTable()) {
    if (row.of_classes || row.kind == gpu::LossKind::kSquared) continue;
    const gpu::PointLoss loss{row.kind, row.kind == gpu::LossKind::kTweedie ? 1.5 : 0.7};
    Regression weighted = Of(loss, {0.1, 0.5, 1}, {1, 2, 5}, {3, 0, 2});
    Regression repeated = Of(loss, {0.1, 0.1, 0.1, 1, 1}, {1, 1, 1, 5, 5});
    CHECK(*weighted.deviance() == doctest::Approx(*repeated.deviance()).epsilon(1e-12));
    CHECK(*weighted.base_deviance() == doctest::Approx(*repeated.base_deviance()).epsilon(1e-12));
    CHECK(weighted.share_below() == repeated.share_below());
    CHECK_FALSE(Of(loss, {1}, {1}, {0}).base_deviance());
  }
}

TEST_CASE("scores: probabilities are those of a softmax and a sigmoid, however large the logits") {
  float p[3];
  const float logits[3] = {1000, 999, -1000};
  Probabilities(logits, 3, p);
  CHECK(p[0] == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(p[1] == doctest::Approx(std::exp(-1.0) / (1 + std::exp(-1.0))));
  CHECK(p[2] == 0);
  const float logit = -2;
  Probabilities(&logit, 1, p);
  CHECK(p[1] == doctest::Approx(1 / (1 + std::exp(2.0))));
  CHECK(p[0] + p[1] == doctest::Approx(1));
  CHECK(PredictedClass(&logit, 1) == 0);
  CHECK(PredictedClass(logits, 3) == 0);
}

}  // namespace
}  // namespace dtrain
