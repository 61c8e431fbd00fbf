#include "trainer/worker/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "trainer/data/files/held_out.h"
#include "trainer/data/load_data.h"

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

EvaluationFigures ReportedFigures(const Evaluation& evaluation, const Figures* figures,
                                  std::optional<double> auc) {
  EvaluationFigures reported;
  if (evaluation.rows == 0) return reported;
  reported.rows = evaluation.rows;
  if (std::isfinite(evaluation.loss())) reported.loss = evaluation.loss();
  if (!evaluation.classifies) return reported;
  reported.accuracy = evaluation.accuracy();
  reported.auc = auc;
  if (figures == nullptr) return reported;
  reported.log_loss = figures->probabilities.log_loss();
  reported.calibration = figures->probabilities.calibration();
  return reported;
}

void LogEvaluation(EvalOn set, int64_t global_step, int64_t local_step, const Evaluation& evaluation,
                   Logger& log) {
  std::string text = fmt::format("evaluation at global step {}, local step {}: {} loss {:.6g}", global_step,
                                 local_step, SetName(set), evaluation.loss());
  LogField accuracy{"accuracy", {}};
  if (evaluation.classifies) {
    text += fmt::format(", accuracy {:.4f}", evaluation.accuracy());
    accuracy.value = evaluation.accuracy();
  }
  log.Record(
      LogLevel::kInfo, text,
      {{"global_step", global_step}, {"local_step", local_step}, {"eval_loss", evaluation.loss()}, accuracy});
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
