// launch.copy: this program, the libraries that it has brought along and the config on the machines' disks,
// before a task starts. By the shell and the tools that every machine has; a file is there as a whole, with
// its checksum, or not at all.
#pragma once

#include <vector>

#include "base/log.h"
#include "cmd/launch/copied_files.h"

namespace dtrain {

// To all machines at once; what is there already stays. A directory that had to be made goes to the log: it
// may be a mistyped one. Throws UserError with a line for each machine that failed.
void CopyToMachines(const std::vector<MachineFiles>& copies, const LaunchConfig& launch, Logger& log);

}  // namespace dtrain
