// `dtrain launch`, which runs a cluster over ssh, and `dtrain guard`, which it runs on each task's machine as
// the parent of the task. docs/architecture.md explains how they end together.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain launch: starts every task of the config on its machine, over ssh, and runs the cluster to its end,
// as `dtrain local` does on one machine. Returns the exit code; if it is not 0, standard error says why.
int RunLaunchCommand(const LaunchArguments& arguments, ErrorLines& errors);

// dtrain guard: starts one task of `dtrain launch` on its machine, reports to the launcher over standard
// input and output, and ends the task when the launcher is gone. Returns 0 when the task has ended in any
// way; the report (remote_task.h) says how. Throws Failure if the task cannot be started.
int RunGuardCommand(const GuardArguments& arguments);

}  // namespace dtrain
