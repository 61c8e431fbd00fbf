// The closing lines of a run whose tasks have one parent: one block in the log of all, and each task's own in
// its file. Plain functions; dtrain local and dtrain launch share them.
#pragma once

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

// Whether tasks leave their closing lines to their parent: in the log of all they would say one thing many
// times. With log.level debug they do not.
bool ParentTellsEnd(const LogConfig& config);

// Of a run that is done; nothing of another. A task that was not there to the end gets no lines. `log` is the
// parent's own.
void TellRunEnd(const Config& config, const RunSummary& summary, Logger& log);

}  // namespace dtrain
