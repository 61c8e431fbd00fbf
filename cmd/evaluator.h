// Evaluator: evaluates checkpoints as the arguments of dtrain eval say, all on the same devices.
// Owner: RunEvalCommand. Thread: one.
#pragma once

#include <functional>
#include <memory>

#include "cmd/arguments.h"
#include "cmd/error_lines.h"
#include "cmd/evaluation.h"
#include "cmd/new_runtime.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

class Evaluator {
 public:
  Evaluator(const EvalArguments& arguments, NewRuntime new_runtime, const ErrorLines& errors)
      : arguments_(arguments), new_runtime_(new_runtime), errors_(errors) {}

  Config ConfigOf(const CheckpointReader& checkpoint) const;
  // And prints the figures; `line`: on one line. `breather` is called between batches; it may throw.
  EvaluationOutcome Evaluate(const Config& config, CheckpointReader* checkpoint, bool line,
                             const std::function<void()>& breather);
  // For --result.
  RunSummary SummaryOf(const EvaluationOutcome& outcome) const;

 private:
  void ChooseOnce(const Config& config);

  const EvalArguments& arguments_;
  const NewRuntime new_runtime_;
  const ErrorLines& errors_;
  std::unique_ptr<gpu::cuda::Runtime> runtime_;
  DeviceChoice devices_;
};

}  // namespace dtrain
