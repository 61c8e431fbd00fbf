// The commands that run tasks of a cluster: one of them in this process, or all of them on this machine.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain --config F --role R --index I, or --from S: one task of the cluster. Runs it to its end and returns
// the exit code; how it failed is in its log. Throws Failure where it cannot even begin: the config, the
// index, the log, the result's path; `errors` then knows log.format, where the config has got so far. With
// --from it first finds out which task this process is; an evaluator runs as `dtrain eval --follow`. All
// tasks may have one command line: only worker 0 writes --result, and so does any task that fails before it
// knows what it is.
int RunTaskCommand(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

// dtrain local: the whole cluster on this machine, as child processes or as threads. Returns the exit code;
// the last line on standard error says why it is not 0. Throws Failure where nothing could be started, or a
// run of threads failed; `errors` then knows log.format, where the config has got so far.
int RunLocalCommand(const LocalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

}  // namespace dtrain
