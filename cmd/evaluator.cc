#include "cmd/evaluator.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>

#include "base/error.h"
#include "cmd/checkpoint_model.h"
#include "cmd/evaluation_text.h"
#include "cmd/result_file.h"

namespace dtrain {

Config Evaluator::ConfigOf(const CheckpointReader& checkpoint) const {
  Config config = ConfigFor(checkpoint, arguments_.config);
  EvaluateOn(arguments_.data, &config);
  return config;
}

void Evaluator::ChooseOnce(const Config& config) {
  if (runtime_ != nullptr) return;
  runtime_ = new_runtime_();
  devices_ = ChooseDevices(config.device, *runtime_);
  if (devices_.warn) errors_.Print(devices_.why_cpu);
}

EvaluationOutcome Evaluator::Evaluate(const Config& config, CheckpointReader* checkpoint, bool line,
                                      const std::function<void()>& breather) {
  ChooseOnce(config);
  EvaluationOutcome outcome = EvaluateCheckpoint(config, devices_, checkpoint, breather);
  fmt::print("{}", arguments_.json ? EvaluationJson(outcome)
                   : line          ? EvaluationLine(outcome)
                                   : EvaluationText(outcome));
  if (std::fflush(stdout) != 0) throw IoError("standard output: {}", ErrnoText(errno));
  return outcome;
}

RunSummary Evaluator::SummaryOf(const EvaluationOutcome& outcome) const {
  RunSummary summary = EvaluationSummary(outcome);
  summary.device = DevicesName(devices_);
  summary.wall_s = SecondsSinceStart();
  return summary;
}

}  // namespace dtrain
