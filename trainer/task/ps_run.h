// PsRun: one ps over a whole run. When the run goes back to its newest checkpoint, PsRun drops the PsServer
// with all its state and makes a new one: one path serves the start, a lost ps and a lost ps 0.
// Thread: the caller's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "trainer/ps/ps_server.h"
#include "trainer/ps/run_history.h"
#include "trainer/summary/summary.h"

namespace dtrain {

// Tells the tasks that ps 0 cannot begin: they would wait for it until failure.startup_timeout_s. Waits a few
// seconds at most.
void TellOfFailedStart(const PsTask& task, const Failure& failure);

class PsRun {
 public:
  explicit PsRun(const PsTask& task);

  // Serves until the run is over. Throws Failure when it has failed; Abort() then tells the others.
  RunSummary Run();
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr) {
    if (server_) server_->Abort(exit_code, text, summary);  // null: making it failed after a rollback
  }
  // After Abort(), what the run has reached, as far as this ps knows.
  RunSummary Reached() const { return server_ ? server_->Reached() : RunSummary(); }

 private:
  void BeginRun();
  void GoOnIfHeld();

  std::unique_ptr<PsSummary> summary_;  // of ps 0 with summary.dir
  PsTask task_;
  RunHistory history_;
  std::unique_ptr<PsServer> server_;
};

}  // namespace dtrain
