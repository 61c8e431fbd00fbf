// dtrain local: the whole cluster on this machine, as child processes or as threads.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Runs the cluster and returns the exit code; the last block on standard error says why it is not 0.
// Throws Failure where nothing could be started, or a run of threads failed.
int RunLocalCommand(const LocalArguments& arguments);

}  // namespace dtrain
