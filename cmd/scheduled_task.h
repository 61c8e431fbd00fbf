// dtrain --from S: the task that a scheduler's environment says this process is.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"
#include "cmd/new_runtime.h"

namespace dtrain {

// Finds out which one it is and runs it, as RunTaskCommand does with role and index; an evaluator as
// `dtrain eval --follow`. All tasks may have one command line: of ps and workers only worker 0 writes
// --result, and any task that fails before it knows who it is.
int RunScheduledTask(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

}  // namespace dtrain
