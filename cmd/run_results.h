// RunResults: where the children of `dtrain local` leave the run's result, in memory without a name, so that
// nothing lies about at any ending. ps 0 has one place and each worker: all have the same result at the end,
// and ps 0 may be killed when only the others have left it.
// Owner: the local command; children inherit the descriptors. Thread: any.
#pragma once

#include <cstddef>
#include <vector>

#include "cmd/run_stage.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

bool IsDone(const RunSummary& summary);

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
  // Of a run that is done what one of those has left, otherwise what ps 0 has: a summary without anything
  // when it has not got that far.
  RunSummary Read() const;

 private:
  std::vector<int> fds_;  // of ps 0, then of the workers
};

}  // namespace dtrain
