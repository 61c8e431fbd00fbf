// dtrain guard: one task of `dtrain launch` on its machine. It starts the task, reports to whoever holds the
// other end of its standard input and output, and ends the task when nobody does any more.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Returns 0 when the task has ended, however: that is in the report (protocol.h). Throws Failure where the
// task cannot be started.
int RunGuardCommand(const GuardArguments& arguments);

}  // namespace dtrain
