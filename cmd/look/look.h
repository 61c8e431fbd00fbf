// The commands that examine a config or this machine and run nothing.
#pragma once

#include <string>

#include "cmd/common/arguments.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"

namespace dtrain {

// dtrain check: prints what a config amounts to. Returns 0. Throws UserError with every error found.
int RunCheckCommand(const CheckArguments& arguments);

// dtrain plan: prints which variables are on which ps, their bytes, and the traffic to and from each ps.
int RunPlanCommand(const PlanArguments& arguments);

// dtrain devices: prints the devices that a worker could use on this machine. Returns 0 with or without a
// GPU.
int RunDevicesCommand(const DevicesArguments& arguments, NewRuntime new_runtime);

// Returns the text of dtrain --version: version and commit, the libraries in use, and this machine.
std::string VersionText();

// Prints a warning on standard error for the first ps and for the first worker that alone needs more memory
// than this machine has. It is only a warning because check and plan may run on a smaller machine than the
// job. model.inputs and model.outputs must be set.
void WarnOfMemory(const Config& config, const Layout& layout);

}  // namespace dtrain
