// What a run has left on the machines of its tasks, brought into its directory on this one at the end of
// `dtrain launch`. It uses a shell and tar there. Thread: the command's; it starts one for each machine.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/launch/plan.h"

namespace dtrain {

// Returns the folders of the run's directory to fetch, those that no key has put elsewhere: the curves, and
// with `weights` the checkpoints.
std::vector<std::string> FoldersToFetch(const Config& config, bool weights);

// Copies folders of the directory `run`, as PlanFor has it, from all machines into config.run.dir. Logs what
// came, and a warning for each machine that failed or was still asked when a signal came: its files stay
// there.
void FetchFolders(const std::vector<PlannedTask>& tasks, const std::string& run,
                  const std::vector<std::string>& folders, const Config& config, SignalPipe& signals,
                  Logger& log);

}  // namespace dtrain
