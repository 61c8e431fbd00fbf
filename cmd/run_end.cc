#include "cmd/run_end.h"

#include <algorithm>

#include "base/error.h"
#include "cmd/load_config.h"
#include "cmd/run_results.h"
#include "cmd/task_child.h"
#include "trainer/task/end_lines.h"

namespace dtrain {
namespace {

bool Has(const std::vector<int64_t>& indices, int index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

void WriteOwnEnd(const Config& config, TaskId task, const RunSummary& summary) {
  Console unused(LiveLine::kNone);
  LogOptions options = LogOptionsOf(config.log, unused);
  options.standard_error = false;
  Logger file(TaskName(task), options);
  LogEnd(config, task, summary, file);
}

}  // namespace

bool ParentTellsEnd(const LogConfig& config) { return config.level > static_cast<int>(LogLevel::kDebug); }

void TellRunEnd(const Config& config, const RunSummary& summary, Logger& log) {
  if (!IsDone(summary)) return;
  LogRunEnd(config, summary, log);
  if (config.log.dir.empty() || !ParentTellsEnd(config.log)) return;
  for (const TaskId task : TasksOf(config.cluster)) {
    const bool worker = task.role == Role::kWorker;
    if (worker && (Has(summary.lost_workers, task.index) || Has(summary.absent_workers, task.index)))
      continue;
    try {
      WriteOwnEnd(config, task, summary);
    } catch (const Failure& failure) {
      log.Warning("{}", failure.what());  // no reason to call the run a failure
    }
  }
}

}  // namespace dtrain
