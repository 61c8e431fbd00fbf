// LostWorkers: what the loss of a task means, and for which lost workers a run waits, and until when. With
// failure.worker_lost: wait the run waits up to failure.wait_s for each. Otherwise, with failure.restarts,
// only its end waits for those that have steps left and may be started again.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/leader/recovery.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

class LostWorkers {
 public:
  LostWorkers(const Config& config, const TaskTable& members, RunHistory& history, Logger& log)
      : config_(config), members_(members), history_(history), log_(log) {}

  // A worker has said Hello, from a new process or not.
  void NoteProcess(const Member& worker);
  // What losing this task means for the run now, a ps or a worker.
  Loss WhatIfLost(const Member& member, RunPhase phase) const;
  // Why the run ends without it: "; no other worker is left to go on"; empty for a ps.
  std::string WhyNeeded(const Member& member) const;
  // What is lost with a ps that takes the run with it, and what to do, in sentences.
  std::string WhatIsLost(int64_t global_step) const;
  // What becomes of the rows of a worker that the run goes on without: "; nobody trains on its share of the
  // rows (1 of 4) until it is back"; empty for a ps and for a worker that has no steps left.
  std::string RowsText(const Member& member) const;
  // Whether a worker that was lost before it was done is connected again or may still be started again. The
  // run does not need it, but its steps are not given up.
  bool MayReturn(TimePoint now) const;

  // Throws PeerLost when a worker that is waited for has been lost for longer than failure.wait_s. Logs for
  // whom the run waits, and until when, every ten seconds. `at_end`: all other workers are done.
  void Tick(TimePoint now, bool at_end);
  // For whom the run waits, and for how long yet; empty: for nobody.
  std::string WaitingText(TimePoint now, bool at_end) const;

 private:
  // The workers that are waited for, and when the wait for the first or, at the end, the last of them is
  // over.
  struct Awaited {
    std::string names;  // "worker 1, worker 3"; empty: there are none
    TimePoint until = TimePoint::max();
  };
  Awaited AwaitedNow(TimePoint now, bool at_end) const;
  TimePoint ReturnsBy(const Member& worker) const;
  bool IsStartedAgain(const Member& worker) const;
  bool waits() const { return config_.failure.worker_lost == WorkerLost::kWait; }

  const Config& config_;
  const TaskTable& members_;
  RunHistory& history_;
  Logger& log_;
  std::string told_;  // the names that were told last
  TimePoint next_line_;
};

}  // namespace dtrain
