// dtrain devices: what a worker could compute on here.
#pragma once

#include "cmd/arguments.h"
#include "cmd/new_runtime.h"

namespace dtrain {

// Prints it and returns 0, with or without a GPU.
int RunDevicesCommand(const DevicesArguments& arguments, NewRuntime new_runtime);

}  // namespace dtrain
