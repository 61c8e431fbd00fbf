// dtrain inspect: the checkpoints of a directory, or one of them: verified in full, and what is in it.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Throws UserError where what was named is damaged, in part or all of it, or is no checkpoint.
int RunInspectCommand(const InspectArguments& arguments);

}  // namespace dtrain
