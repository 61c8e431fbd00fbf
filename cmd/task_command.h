// dtrain --config F --role R --index I: one task of the cluster.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Runs the task to its end and returns the exit code; how it failed is in its log. Throws Failure where it
// cannot even begin: the config, the index, the log, the result's path.
int RunTaskCommand(const TaskArguments& arguments);

}  // namespace dtrain
