// What a task logs at its end of where the workers' time went.
#pragma once

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// "worker 2: waited 31 % for others; of 12.34 s in 5000 steps (p50 and p95 of a step in ms): data 0.05 s
// (0.010, 0.020), compute 1.20 s (0.240, 0.260), hooks ..., wait ..., network ..."
std::string TimesLine(int worker, const WorkerFigures& figures);
// "worker 2: staleness 1.9 in the mean, p50 2, p95 3, at most 7".
std::string StalenessLine(int worker, const StalenessSpread& staleness);

// Both of each worker at the chief, and of itself at any other worker.
void LogWorkers(TaskId task, const RunSummary& summary, Logger& log);

}  // namespace dtrain
