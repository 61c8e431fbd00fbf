// dtrain relay: what stands in `dtrain launch` for a task on another machine: for its parent it is that task.
// It runs the command that leads to the guard there, hands signals on, passes lines and reports back, and
// ends as the task has ended: with its exit code, or by its signal. SIGUSR1 asks it to kill the task.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Returns the task's exit code. Where the task could not be started it is 2, and one of a lost peer where the
// connection broke, or the run had begun; a line on standard error says why.
int RunRelayCommand(const RelayArguments& arguments);

}  // namespace dtrain
