#include "cmd/eval_command.h"

#include "base/error.h"
#include "cmd/checkpoint_model.h"
#include "cmd/evaluator.h"
#include "cmd/follow_run.h"
#include "cmd/result_file.h"

namespace dtrain {
namespace {

int EvaluateOne(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
                ResultFile* result) {
  return WithModel(
      arguments.path, arguments.config, errors, [&](CheckpointReader* checkpoint, Config config) {
        EvaluateOn(arguments.data, &config);
        result->Write(evaluator->SummaryOf(evaluator->Evaluate(config, checkpoint, /*line=*/false, [] {})));
      });
}

}  // namespace

int RunEvalCommand(const EvalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  ResultFile result(arguments.result, errors);
  try {
    Evaluator evaluator(arguments, new_runtime, errors);
    const bool follow = arguments.follow && !arguments.config.dump;
    return follow ? FollowRun(arguments, &evaluator, errors, &result).Run()
                  : EvaluateOne(arguments, &evaluator, errors, &result);
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  }
}

}  // namespace dtrain
