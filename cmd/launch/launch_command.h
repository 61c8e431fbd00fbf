// dtrain launch: every task of the spec where its address says, over ssh; for the user what `dtrain local`
// is.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"

namespace dtrain {

// Runs the cluster and returns the exit code; the last line on standard error says why it is not 0. Throws
// Failure where nothing could be started.
int RunLaunchCommand(const LaunchArguments& arguments, ErrorLines& errors);

}  // namespace dtrain
