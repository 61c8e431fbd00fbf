// Evaluates weights on a whole set of rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/model.h"

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

void LogEvaluation(int64_t global_step, int64_t local_step, const Evaluation& evaluation, Logger& log);

// Whether `data` has the rows that eval.on names.
bool HasEvaluationRows(const Config& config, const LoadedData& data);
// The rows that eval.on names, in order; null: the config names none.
std::unique_ptr<BatchSource> EvaluationSource(const Config& config, const LoadedData& data);

}  // namespace dtrain
