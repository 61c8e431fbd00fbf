// dtrain --config F --role R --index I, or --from S: one task of the cluster.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"
#include "cmd/new_runtime.h"

namespace dtrain {

// Runs the task to its end and returns the exit code; how it failed is in its log. Throws Failure where it
// cannot even begin: the config, the index, the log, the result's path;
// `errors` then knows log.format, where the config has got so far.
int RunTaskCommand(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

}  // namespace dtrain
