// What is logged when a run is done: what came out, who was not there to the end, where the time went, and
// `done`.
#pragma once

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// For a task's own log: a worker's has its own accuracy.
void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log);

// For the log of the whole run, once for all tasks: with every worker's accuracy.
void LogRunEnd(const Config& config, const RunSummary& summary, Logger& log);

}  // namespace dtrain
