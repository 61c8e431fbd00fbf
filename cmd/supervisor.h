// Supervisor: runs the children of `dtrain local` until all have ended: passes their lines on, ends the rest
// when one fails that they need, forwards SIGINT and SIGTERM. One event loop; it waits only for events and
// deadlines. Owner: the local command. Thread: the main thread only (see child_process.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "cmd/child_process.h"
#include "cmd/post_mortem.h"
#include "cmd/signal_pipe.h"

namespace dtrain {

// How long the parent waits before it helps.
struct Patience {
  milliseconds after_failure{3000};   // the others may notice and end by themselves
  milliseconds after_success{30000};  // a task ends with success only when the run is over everywhere
  milliseconds after_sigterm{5000};
};

struct Outcome {
  std::vector<ChildEnd> ends;  // in the order of dying
  int stop_signal = 0;         // SIGINT or SIGTERM that the parent got
};

class Supervisor {
 public:
  // The children's lines go to `console`; with `json` those that are no objects, such as of a crash, as the
  // text of one.
  Supervisor(Patience patience, Console& console, bool json);
  // Starts every child. Throws IoError; destruction kills those that run. `begun`: whether the run has begun,
  // so that the others may go on without an expendable child; asked when one fails.
  void Start(const std::vector<ChildCommand>& commands, std::function<bool()> begun);
  // Returns when all are reaped.
  Outcome Run();

 private:
  enum class Phase { kRunning, kEnding, kAsked, kKilled };

  void WaitForEvents();
  void PassLinesOn();
  void PassLinesOn(ChildProcess& child);
  void TakeSignals();
  void ReapChildren();
  void OnChildEnd(size_t child);
  void OnDeadline();
  void SignalAll(int signal);
  // Moves on when the new phase is later than the present one.
  void Enter(Phase phase, milliseconds patience);
  bool AllEnded() const { return outcome_.ends.size() == children_.size(); }

  const Patience patience_;
  Console& console_;
  const bool json_;
  SignalPipe signals_;
  std::function<bool()> begun_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
  std::vector<bool> reaped_;
  Phase phase_ = Phase::kRunning;
  TimePoint deadline_ = TimePoint::max();
  Outcome outcome_;
};

}  // namespace dtrain
