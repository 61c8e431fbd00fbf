// The command that looks at a run.
#pragma once

#include "cmd/common/arguments.h"

namespace dtrain {

// dtrain status: prints what a run does, or how it ended, or a table of the runs in a directory. Returns 0.
// Throws UserError for a run that is none, and Failure (kPeerLost) when the ps 0 at an address does not
// answer.
int RunStatusCommand(const StatusArguments& arguments);

}  // namespace dtrain
