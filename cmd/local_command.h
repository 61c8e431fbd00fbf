// dtrain local: the whole cluster on this machine, as child processes or as threads.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"
#include "cmd/new_runtime.h"

namespace dtrain {

// Runs the cluster and returns the exit code; the last line on standard error says why it is not 0.
// Throws Failure where nothing could be started, or a run of threads failed; `errors` then knows log.format,
// where the config has got so far.
int RunLocalCommand(const LocalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

}  // namespace dtrain
