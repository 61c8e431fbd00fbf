// RunResults: the result that children leave to their parent, and the closing lines that the parent makes of
// it. dtrain local and dtrain launch share them.
#pragma once

#include <cstddef>
#include <vector>

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// How far a run has come, as its result tells.
enum class RunStage { kStarting, kRunning, kDone };

bool IsDone(const RunSummary& summary);

// Files in memory without a name, so that no ending leaves anything behind. ps 0 has one and each worker: all
// have the same result at the end, and ps 0 may be killed when only the others have left it. Owner: the
// launching command; children inherit the descriptors. Thread: any.
class RunResults {
 public:
  explicit RunResults(size_t workers);
  ~RunResults();
  RunResults(const RunResults&) = delete;
  RunResults& operator=(const RunResults&) = delete;

  int ps_fd() const { return fds_.front(); }
  int worker_fd(size_t worker) const { return fds_[1 + worker]; }
  // ps 0 writes first when the run begins. It is done when anybody says so.
  RunStage Stage() const;
  // The summary of a run that is done, from whichever file has it; otherwise what ps 0 has left, which is an
  // empty summary when it has not got that far.
  RunSummary Read() const;

 private:
  std::vector<int> fds_;  // that of ps 0, then those of the workers
};

// Whether tasks leave their closing lines to their parent: in the log of all they would say one thing many
// times. With log.level debug they do not.
bool ParentLogsEnd(const LogConfig& config);

// Logs the closing lines of a run that is done: one block in `log`, the parent's own, and each task's lines
// in its file. A task that was not there to the end gets none; a run that is not done gets none at all.
void LogClosingLines(const Config& config, const RunSummary& summary, Logger& log);

}  // namespace dtrain
