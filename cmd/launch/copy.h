// launch.copy: this program, the libraries that it has brought along and the config on the machines' disks,
// before a task starts. By the shell and the tools that every machine has; a file is there as a whole, with
// its checksum, or not at all.
#pragma once

#include <string>
#include <vector>

#include "cmd/launch/plan.h"

namespace dtrain {

// Those files to each machine that gets a copy, all machines at once; what is there already stays. `config`:
// its path here. Throws UserError with a line for each machine that failed.
void CopyToMachines(const std::vector<PlannedTask>& tasks, const std::string& config,
                    const LaunchConfig& launch);

}  // namespace dtrain
