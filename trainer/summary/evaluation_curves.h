// EvaluationCurves: what one who evaluates a run's checkpoints leaves for TensorBoard, in a folder of its
// own. Owner: dtrain eval --follow. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/signals.h"
#include "trainer/model/model.h"
#include "trainer/summary/event_writer.h"

namespace dtrain {

class EvaluationCurves {
 public:
  // Throws UserError or IoError where the directory cannot be written.
  explicit EvaluationCurves(const std::string& directory)
      : log_("evaluator", LogOptions()), writer_(directory, hooks_, log_) {}

  void Add(int64_t global_step, const Evaluation& evaluation, std::optional<double> auc) {
    writer_.Add("eval/loss", evaluation.loss());
    if (evaluation.classifies) writer_.Add("eval/accuracy", evaluation.accuracy());
    if (auc) writer_.Add("eval/auc", *auc);
    writer_.WriteScalars(global_step, Clock::now());
    writer_.Flush();
  }

 private:
  Logger log_;
  ExitHooks hooks_;
  EventWriter writer_;
};

}  // namespace dtrain
