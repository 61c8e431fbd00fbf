// The command that runs a cluster over ssh, and the two that it gives itself: a relay on this machine and a
// guard on the task's machine stand between it and each task. docs/architecture.md explains how they end
// together.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain launch: every task of the spec where its address says, over ssh; for the user what `dtrain local`
// is. Runs the cluster and returns the exit code; the last line on standard error says why it is not 0.
// Throws Failure where nothing could be started.
int RunLaunchCommand(const LaunchArguments& arguments, ErrorLines& errors);

// dtrain relay: what stands in `dtrain launch` for a task on another machine: for its parent it is that task.
// It runs the command that leads to the guard there, hands signals on, passes lines and reports back, and
// ends as the task has ended: with its exit code, or by its signal. SIGUSR1 asks it to kill the task. Returns
// the task's exit code. Where the task could not be started it is 2, and that of a lost peer where the
// connection broke, or the run had begun; a line on standard error says why.
int RunRelayCommand(const RelayArguments& arguments);

// dtrain guard: one task of `dtrain launch` on its machine. It starts the task, reports to the other end of
// its standard input and output, and ends the task when nobody is there any more. Returns 0 when the task has
// ended, however: that is in the report (protocol.h). Throws Failure where the task cannot be started.
int RunGuardCommand(const GuardArguments& arguments);

}  // namespace dtrain
