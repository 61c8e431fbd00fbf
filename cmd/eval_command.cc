#include "cmd/eval_command.h"

#include <optional>

#include "base/error.h"
#include "cmd/checkpoint_argument.h"
#include "cmd/checkpoint_model.h"
#include "cmd/evaluator.h"
#include "cmd/follow_run.h"
#include "cmd/result_file.h"

namespace dtrain {
namespace {

int EvaluateOne(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
                ResultFile* result) {
  std::optional<CheckpointReader> checkpoint;
  Config config;
  OpenCheckpoint(arguments.path, errors, [&](const std::string& path) {
    checkpoint.emplace(path);
    if (!arguments.config.dump) config = evaluator->ConfigOf(*checkpoint);
  });
  if (arguments.config.dump) return DumpConfigFor(*checkpoint, arguments.config);
  result->Write(evaluator->SummaryOf(evaluator->Evaluate(config, &*checkpoint, /*line=*/false, [] {})));
  return 0;
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
