// A whole cluster in one process, for tests of how its run ends.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/task/run_task.h"

namespace dtrain {

// Runs to the end; logs only errors.
inline RunSummary Run(const Config& config, const TaskOptions& options = {}) {
  LogOptions log;
  log.level = LogLevel::kError;
  return RunClusterInProcess(config, log, options);
}

// The sum over all workers.
inline int64_t Sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return sum;
}

}  // namespace dtrain
