#include "trainer/worker/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "trainer/config/config.h"
#include "trainer/order/held_out.h"
#include "trainer/sets/load_data.h"

namespace dtrain {

Evaluation EvaluateAll(Model& model, const float* parameters, BatchSource& source,
                       const std::function<void()>& between_batches, Figures* figures) {
  EvaluationSum sum(model, parameters, figures);
  Batch batch;
  while (source.Next(&batch)) {
    sum.Add(batch);
    between_batches();
  }
  return sum.sum();
}

void EvaluationSum::Add(const Batch& batch) {
  if (figures_ == nullptr) {
    sum_.Add(model_.Evaluate(parameters_, batch));
    return;
  }
  outputs_.resize(std::max(outputs_.size(), static_cast<size_t>(batch.rows * model_.outputs())));
  sum_.Add(model_.Evaluate(parameters_, batch, outputs_.data()));
  figures_->Add(batch, outputs_.data());
}

namespace {

void ReportClasses(const Figures& figures, const std::vector<std::string>& classes,
                   EvaluationFigures* reported) {
  const ProbabilityFigures& probabilities = figures.probabilities;
  const std::vector<double> shares = probabilities.Shares();
  if (shares.empty()) return;
  const auto largest = std::max_element(shares.begin(), shares.end());
  const auto name_of = [&](size_t number) {
    return number < classes.size() ? classes[number] : fmt::format("{}", number);
  };
  reported->base_accuracy = *largest;
  reported->base_class = name_of(static_cast<size_t>(largest - shares.begin()));
  const bool has_scores = gpu::LossRowOf(figures.loss.kind).of_classes;
  if (!has_scores) {
    reported->log_loss = probabilities.log_loss();
    reported->base_log_loss = probabilities.shares_log_loss();
  }
  if (shares.size() != 2) return;
  reported->positive_class = name_of(1);
  reported->positive_share = shares[1];
  if (has_scores) return;
  reported->calibration = probabilities.calibration();
  const std::vector<ThresholdFigures> thresholds = figures.reliability.Thresholds();
  if (!thresholds.empty()) reported->thresholds = thresholds;
}

void ReportErrors(const Regression& errors, EvaluationFigures* reported) {
  const auto finite = [](std::optional<double> figure) {
    return figure && std::isfinite(*figure) ? figure : std::nullopt;
  };
  reported->rmse = finite(errors.rmse());
  reported->mae = finite(errors.mae());
  reported->r2 = finite(errors.r_squared());
  reported->base_rmse = errors.mean_rmse();
  reported->base_mae = errors.mean_mae();
  reported->deviance = finite(errors.deviance());
  reported->base_deviance = finite(errors.base_deviance());
  if (reported->deviance && reported->base_deviance && *reported->base_deviance > 0) {
    reported->d2 = 1 - *reported->deviance / *reported->base_deviance;
  }
  reported->share_below = errors.share_below();
}

}  // namespace

EvaluationFigures ReportedFigures(const Evaluation& evaluation, const Figures* figures,
                                  const std::vector<std::string>& classes,
                                  const std::function<void()>& before_class) {
  EvaluationFigures reported;
  if (evaluation.rows == 0) return reported;
  reported.rows = evaluation.rows;
  if (std::isfinite(evaluation.loss())) reported.loss = evaluation.loss();
  if (evaluation.classifies && evaluation.weight > 0) reported.accuracy = evaluation.accuracy();
  if (figures == nullptr) return reported;
  if (!evaluation.classifies) {
    ReportErrors(figures->regression, &reported);
    return reported;
  }
  ReportClasses(*figures, classes, &reported);
  const Ranking ranking = figures->scores.Rank(before_class);
  reported.auc = ranking.auc;
  reported.average_precision = ranking.average_precision;
  if (figures->threshold && reported.accuracy) reported.accuracy = figures->accuracy();
  return reported;
}

void LogEvaluation(EvalOn set, int64_t global_step, int64_t local_step, const Evaluation& evaluation,
                   EvalMetric metric, double figure, Logger& log) {
  std::string text =
      fmt::format("evaluation at global step {}, local step {}: {}", global_step, local_step, SetName(set));
  const bool test = set == EvalOn::kTest;
  LogField loss{test ? "test_loss" : "validation_loss", {}};
  LogField accuracy{test ? "test_accuracy" : "validation_accuracy", {}};
  if (evaluation.weight == 0) {
    text += ": the rows weigh nothing";
  } else {
    text += fmt::format(" loss {:.6g}", evaluation.loss());
    loss.value = evaluation.loss();
    if (evaluation.classifies) {
      text += fmt::format(", accuracy {:.4f}", evaluation.accuracy());
      accuracy.value = evaluation.accuracy();
    }
  }
  const LogField step{"global_step", global_step}, own_step{"local_step", local_step};
  if (metric == EvalMetric::kLoss || metric == EvalMetric::kAccuracy)
    return log.Record(LogLevel::kInfo, text, {step, own_step, loss, accuracy});
  text += std::isnan(figure) ? "" : fmt::format(", {} {:.6g}", MetricName(metric), figure);
  const std::string name = fmt::format("{}_{}", SetName(set), MetricName(metric));
  const LogField other{name.c_str(), std::isnan(figure) ? LogField::Value() : LogField::Value(figure)};
  log.Record(LogLevel::kInfo, text, {step, own_step, loss, accuracy, other});
}

std::unique_ptr<BatchSource> EvaluationSource(EvalOn set, const Config& config, const LoadedData& data) {
  const int64_t rows = config.train.batch_size * config.device.towers();  // of a batch on all devices
  if (set == EvalOn::kTest) {
    if (data.test == nullptr || !data.test->rows()) return nullptr;
    return MakeSequentialSource(data.test, 0, *data.test->rows(), rows);
  }
  const int64_t held_out = data.train == nullptr ? 0 : HeldOutRows(config.data, data.train->rows());
  return held_out > 0 ? MakeSequentialSource(data.train, 0, held_out, rows) : nullptr;
}

}  // namespace dtrain
