// PsRun: one ps over a whole run. When the run goes back to its newest checkpoint, PsRun drops the PsServer
// with all its state and makes a new one: one path serves the start, a lost ps and a lost ps 0.
// Thread: the caller's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "trainer/ps/ps_server.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

class PsRun {
 public:
  explicit PsRun(const PsTask& task);

  // Serves until the run is over. Throws Failure when it has failed; Abort() then tells the others.
  RunSummary Run();
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr) {
    if (server_) server_->Abort(exit_code, text, summary);  // null: making it failed after a rollback
  }

 private:
  const PsTask task_;
  RunHistory history_;
  std::unique_ptr<PsSummary> summary_;  // of ps 0 with summary.dir
  std::unique_ptr<PsServer> server_;
};

}  // namespace dtrain
