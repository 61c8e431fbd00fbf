#include "trainer/result/verdict.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <utility>

namespace dtrain {
namespace {

EvaluationFigures Churn() {
  EvaluationFigures figures;
  figures.rows = 2000;
  figures.loss = figures.log_loss = 0.251;
  figures.base_log_loss = 0.279;
  figures.accuracy = 0.921;
  figures.base_accuracy = 0.92;
  figures.base_class = "no";
  figures.auc = 0.74;
  figures.average_precision = 0.31;
  figures.positive_class = "yes";
  figures.positive_share = 0.08;
  figures.calibration = 1.02;
  return figures;
}

TEST_CASE("verdict: each figure of a classifier stands beside what no model gives") {
  CHECK(VerdictLines("test", Churn()) ==
        std::vector<std::string>{
            "test (2000 rows): accuracy 0.9210, better than always \"no\" (0.9200)",
            "  log loss 0.251, 10 % below that of always the class shares (0.279)",
            "  AUC 0.7400 (chance: 0.5), of class \"yes\": average precision 0.3100 (chance: 0.0800), "
            "calibration 1.020 (predicted / observed; 1 is right)"});
  EvaluationFigures useless = Churn();
  useless.accuracy = 0.92;
  CHECK(VerdictLines("test", useless)[0] ==
        "test (2000 rows): accuracy 0.9200, no better than always \"no\" (0.9200)");
}

TEST_CASE("verdict: of rows that are all of one class no figure is told, but that others are to be chosen") {
  EvaluationFigures figures = Churn();
  figures.accuracy = figures.base_accuracy = 1;
  figures.thresholds.emplace();
  CHECK(
      VerdictLines("validation", figures) ==
      std::vector<std::string>{"validation (2000 rows): all of these rows are of class \"no\", so no figure "
                               "of theirs says anything; hold out others, such as data.validation_by: "
                               "stratified"});
  CHECK(VerdictLines("test", figures) ==
        std::vector<std::string>{"test (2000 rows): all of these rows are of class \"no\", so no figure of "
                                 "theirs says anything; choose other rows"});
  CHECK(VerdictLines("test", figures, 0.2) ==
        std::vector<std::string>{"test (2000 rows): all of these rows are of class \"no\", so no figure of "
                                 "theirs (accuracy with --threshold 0.2: 1.0000) says anything; choose other "
                                 "rows"});
  CHECK(ThresholdLine(figures) == "");
  figures.base_accuracy = 0.92;
  CHECK(ThresholdLine(figures) != "");
}

TEST_CASE("verdict: a log loss that is hardly below the base is told so, and one that is not is no better") {
  EvaluationFigures figures = Churn();
  for (const auto& [log_loss, beside] :
       {std::pair(0.278, "less than 1 % below"), {0.279, "no better than"}, {5.0, "no better than"}}) {
    figures.log_loss = log_loss;
    CHECK(VerdictLines("test", figures)[1] ==
          fmt::format("  log loss {}, {} that of always the class shares (0.279)", log_loss, beside));
  }
}

TEST_CASE("verdict: several classes have no average precision by chance, and one without AUC no such line") {
  EvaluationFigures figures = Churn();
  figures.positive_share.reset();
  figures.calibration.reset();
  CHECK(VerdictLines("test", figures)[2] == "  AUC 0.7400 (chance: 0.5)");
  figures.auc.reset();
  CHECK(VerdictLines("test", figures).size() == 2);
}

TEST_CASE("verdict: a regression stands beside the mean") {
  EvaluationFigures figures;
  figures.rows = 10;
  figures.loss = 4;
  figures.rmse = 2;
  figures.base_rmse = 4;
  figures.mae = 1;
  figures.base_mae = 3;
  figures.r2 = 0.75;
  CHECK(VerdictLines("validation", figures) ==
        std::vector<std::string>{"validation (10 rows): RMSE 2, 50 % below that of always the mean (4); R2 "
                                 "0.7500: 75 % of the variance is "
                                 "explained",
                                 "  MAE 1, 67 % below that of always the mean (3)"});
  figures.rmse = 5;
  figures.r2 = -0.5625;
  CHECK(VerdictLines("validation", figures)[0] ==
        "validation (10 rows): RMSE 5, no better than that of always the mean (4); R2 -0.5625: 0 % of the "
        "variance is "
        "explained");
}

TEST_CASE(
    "verdict: targets that are all equal give no R2 and no comparison with their mean, and the line says "
    "why") {
  EvaluationFigures figures;
  figures.rows = 10;
  figures.rmse = 2;
  figures.mae = 1;
  figures.base_rmse = figures.base_mae = 0;
  CHECK(VerdictLines("test", figures) ==
        std::vector<std::string>{
            "test (10 rows): RMSE 2; all of these targets are equal, so R2 has no meaning", "  MAE 1"});
}

TEST_CASE(
    "verdict: a set whose rows weigh nothing is no good model, and one that was not evaluated is silent") {
  EvaluationFigures figures;
  CHECK(VerdictLines("test", figures).empty());
  figures.rows = 2;
  CHECK(VerdictLines("test", figures) ==
        std::vector<std::string>{
            "test (2 rows): no figures: the rows weigh nothing, or the outputs are not finite"});
}

}  // namespace
}  // namespace dtrain
