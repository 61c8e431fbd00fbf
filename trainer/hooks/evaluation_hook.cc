#include "trainer/hooks/evaluation_hook.h"

#include <fmt/core.h>

#include "base/names.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {

// What was asked for and is not in the directory was lost with the run epoch before.
void EvaluationHook::Begin(const StepView& view) {
  patience_.GoBackTo(view.global_step);
  if (!parts_.config.eval.keep_best) return;
  best_saved_ = CheckpointDirectory(parts_.config.checkpoint.dir).ReadBestLoss();
}

void EvaluationHook::AfterStep(const StepView& view, HookRequests* requests) {
  if (!view.chief || view.local_step % parts_.config.eval.every_steps != 0) return;
  const std::unique_ptr<BatchSource> source = EvaluationSource(parts_.config, parts_.data);
  if (source == nullptr) return;
  parts_.activity.what = "eval";
  const Evaluation evaluation = EvaluateAll(parts_.model, view.weights, *source, parts_.check_peers);
  parts_.activity.what = "step";
  Report(view, evaluation);
  if (parts_.config.eval.keep_best) SaveWhereBest(evaluation, requests);
  if (!patience_.Exhausted(evaluation.loss(), view.global_step)) return;
  requests->end_run =
      fmt::format("{} in a row without a smaller loss (eval.patience); the best was {:.6g} at global step {}",
                  Plural(patience_.in_vain(), "evaluation"), patience_.best_loss(), patience_.best_step());
}

void EvaluationHook::SaveWhereBest(const Evaluation& evaluation, HookRequests* requests) {
  if (!(evaluation.loss() < best_saved_)) return;
  best_saved_ = evaluation.loss();
  const double none = std::numeric_limits<double>::quiet_NaN();
  requests->save_best = EvaluationFigures{best_saved_, evaluation.classifies ? evaluation.accuracy() : none};
}

void EvaluationHook::Report(const StepView& view, const Evaluation& evaluation) {
  const char* set = parts_.config.eval.on == EvalOn::kTest ? "test" : "validation";
  std::string text = fmt::format("evaluation at global step {}, local step {}: {} loss {:.6g}",
                                 view.global_step, view.local_step, set, evaluation.loss());
  LogField accuracy{"accuracy", {}};
  if (evaluation.classifies) {
    text += fmt::format(", accuracy {:.4f}", evaluation.accuracy());
    accuracy.value = evaluation.accuracy();
  }
  parts_.log.Record(LogLevel::kInfo, text,
                    {{"global_step", view.global_step},
                     {"local_step", view.local_step},
                     {"eval_loss", evaluation.loss()},
                     accuracy});
  if (parts_.summary != nullptr) parts_.summary->OnEvaluation(view.global_step, evaluation);
}

}  // namespace dtrain
