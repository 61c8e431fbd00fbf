#include "cmd/run/run_results.h"

#include <doctest/doctest.h>

#include "cmd/common/report.h"

namespace dtrain {
namespace {

void Leave(int fd, const std::string& status, int64_t step) {
  const ErrorLines errors;
  RunSummary summary;
  summary.status = status;
  summary.global_step = step;
  ResultFile("", errors, fd).Write(summary);
}

TEST_CASE("run results: a run starts, begins when ps 0 says so, and is done when it has its result") {
  const RunResults results(2);
  CHECK(results.Stage() == RunStage::kStarting);
  CHECK(results.Read().status.empty());
  const ErrorLines errors;
  ResultFile("", errors, results.ps_fd()).NoteBegun();
  CHECK(results.Stage() == RunStage::kRunning);
  CHECK(results.Read().status.empty());
  Leave(results.ps_fd(), "done", 7);
  CHECK(results.Stage() == RunStage::kDone);
  CHECK(results.Read().global_step == 7);
}

TEST_CASE("run results: where ps 0 has not left that the run is done, any worker's word is enough") {
  for (const char* status : {"done", "already_done"}) {
    for (const size_t worker : {0, 1}) {
      const RunResults results(2);
      Leave(results.ps_fd(), "stopped", 3);
      Leave(results.worker_fd(1 - worker), "peer_lost", 4);
      CHECK(results.Stage() == RunStage::kRunning);
      CHECK(results.Read().global_step == 3);
      Leave(results.worker_fd(worker), status, 5);
      CHECK(results.Stage() == RunStage::kDone);
      CHECK(results.Read().global_step == 5);
    }
  }
}

}  // namespace
}  // namespace dtrain
