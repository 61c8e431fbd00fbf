// The commands that look at a config or at this machine, and run nothing.
#pragma once

#include <string>

#include "cmd/common/arguments.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"

namespace dtrain {

// dtrain check: prints what a config comes to and returns 0. Throws UserError with every error found.
int RunCheckCommand(const CheckArguments& arguments);

// dtrain plan: prints what lies on which ps, how many bytes that is, and what will travel to and from it.
int RunPlanCommand(const PlanArguments& arguments);

// dtrain devices: prints what a worker could compute on here and returns 0, with or without a GPU.
int RunDevicesCommand(const DevicesArguments& arguments, NewRuntime new_runtime);

// dtrain --version: version and commit, the libraries that are loaded or compiled in, and this machine.
std::string VersionText();

// For check and plan, which may run on a machine that is smaller than those of the job: a warning on standard
// error, one line each, for the first ps and the first worker that alone need more memory than this machine
// has. model.inputs and model.outputs must be set.
void WarnOfMemory(const Config& config, const Layout& layout);

}  // namespace dtrain
