// dtrain eval: what the weights of a checkpoint come to on the set of eval.on, without a cluster.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"
#include "cmd/new_runtime.h"

namespace dtrain {

// Throws UserError where there is no good checkpoint, it is of another model, or there is nothing to evaluate
// on.
int RunEvalCommand(const EvalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

}  // namespace dtrain
