// Evaluates weights on a whole set of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/model.h"
#include "trainer/result/run_summary.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"

namespace dtrain {

// Loss and accuracy over all rows of `source`. Calls `between_batches` between batches; it may throw.
// `figures`, if not null, gets the outputs of all rows.
Evaluation EvaluateAll(Model& model, const float* parameters, BatchSource& source,
                       const std::function<void()>& between_batches, Figures* figures = nullptr);

// EvaluationSum: adds up the batches of one evaluation, from a source or from files.
class EvaluationSum {
 public:
  EvaluationSum(Model& model, const float* parameters, Figures* figures)
      : model_(model), parameters_(model.Freeze(parameters)), figures_(figures) {}
  void Add(const Batch& batch);
  const Evaluation& sum() const { return sum_; }

 private:
  Model& model_;
  const float* const parameters_;
  Figures* const figures_;
  std::vector<float> outputs_;
  Evaluation sum_;
};

// Returns what is reported of an evaluation. `figures` has the outputs of all its rows; null: it was made
// without them. `classes`: names, as in InputForm. `before_class`: as for ScoreTable::Rank().
EvaluationFigures ReportedFigures(
    const Evaluation& evaluation, const Figures* figures = nullptr,
    const std::vector<std::string>& classes = {}, const std::function<void()>& before_class = [] {});

// `figure`: of eval.metric, which is told beside the loss and the accuracy; NaN: there is none.
void LogEvaluation(EvalOn set, int64_t global_step, int64_t local_step, const Evaluation& evaluation,
                   EvalMetric metric, double figure, Logger& log);

// The rows of a set, in order; null: `data` has none of it.
std::unique_ptr<BatchSource> EvaluationSource(EvalOn set, const Config& config, const LoadedData& data);

}  // namespace dtrain
