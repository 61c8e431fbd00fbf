#include "cmd/run/run_results.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "cmd/common/load_config.h"
#include "cmd/run/task_child.h"
#include "trainer/task/run_log.h"

namespace dtrain {
namespace {

// Without moving the offset, which the children share.
size_t SizeOf(int fd) {
  struct stat found {};
  DT_CHECK(fstat(fd, &found) == 0, errno);
  return static_cast<size_t>(found.st_size);
}

RunSummary SummaryIn(int fd) {
  std::string text(SizeOf(fd), '\0');
  RunSummary summary;
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  if (got == static_cast<ssize_t>(text.size())) FromWireJson(text, &summary);
  return summary;
}

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

RunResults::RunResults(size_t workers) {
  while (fds_.size() < 1 + workers) {
    const int fd = memfd_create("dtrain-result", MFD_CLOEXEC);
    if (fd < 0) throw NoDescriptor("no memory for results", errno);
    fds_.push_back(fd);
  }
}

RunResults::~RunResults() {
  for (const int fd : fds_) close(fd);
}

RunStage RunResults::Stage() const {
  if (IsDone(Read())) return RunStage::kDone;
  return SizeOf(ps_fd()) == 0 ? RunStage::kStarting : RunStage::kRunning;
}

RunSummary RunResults::Read() const {
  for (const int fd : fds_) {
    RunSummary summary = SummaryIn(fd);
    if (IsDone(summary)) return summary;
  }
  return SummaryIn(ps_fd());
}

bool IsDone(const RunSummary& summary) {
  return summary.status == "done" || summary.status == "already_done";
}

bool ParentLogsEnd(const LogConfig& config) { return config.level > static_cast<int>(LogLevel::kDebug); }

void LogClosingLines(const Config& config, const RunSummary& summary, Logger& log) {
  if (!IsDone(summary)) return;
  LogRunEnd(config, summary, log);
  if (config.log.dir.empty() || !ParentLogsEnd(config.log)) return;
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
