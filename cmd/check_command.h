// dtrain check: what a config comes to, without running it.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Prints it and returns 0. Throws UserError with every error found.
int RunCheckCommand(const CheckArguments& arguments);

}  // namespace dtrain
