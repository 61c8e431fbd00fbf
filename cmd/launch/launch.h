// The command that runs a cluster over ssh, and the one that it gives itself: a guard on the task's machine
// stands between it and each task. docs/architecture.md explains how they end together.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain launch: every task of the spec where its address says, over ssh; for the user what `dtrain local`
// is. Runs the cluster and returns the exit code; the last line on standard error says why it is not 0.
// Throws Failure where nothing could be started.
int RunLaunchCommand(const LaunchArguments& arguments, ErrorLines& errors);

// dtrain guard: one task of `dtrain launch` on its machine. It starts the task, reports to the other end of
// its standard input and output, and ends the task when nobody is there any more. Returns 0 when the task has
// ended, however: that is in the report (remote_task.h). Throws Failure where the task cannot be started.
int RunGuardCommand(const GuardArguments& arguments);

}  // namespace dtrain
