// The commands that run tasks of a cluster: one task in this process, or all of them on this machine.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain --config F --role R --index I, or --from S: runs one task of the cluster to its end. Returns the
// exit code; the task's log says why it failed. Throws Failure if it cannot begin, because of the config, the
// index, the log or the result's path; `errors` then has log.format if the config was read that far. With
// --from, it first finds out which task this process is; an evaluator runs as `dtrain eval --follow`. All
// tasks may have the same command line: only worker 0 writes --result, or a task that fails before it knows
// what it is.
int RunTaskCommand(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

// dtrain local: runs the whole cluster on this machine, as child processes or as threads. Returns the exit
// code; if it is not 0, the last line on standard error says why. Throws Failure if nothing could be started,
// or if a run of threads failed; `errors` then has log.format if the config was read that far.
int RunLocalCommand(const LocalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

}  // namespace dtrain
