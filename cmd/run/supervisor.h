// Supervisor: runs the children of `dtrain local` until all have ended: passes their lines on, starts again
// those that die or hang, ends the rest when one fails for good that they need, forwards SIGINT, SIGTERM and
// SIGHUP. One event loop; it waits only for events and deadlines. Owner: the local command. Thread: the main
// thread only (see child_process.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/run/child_process.h"
#include "cmd/run/exit_verdict.h"
#include "cmd/run/run_results.h"

namespace dtrain {

// How long the parent waits for its children before it ends them.
struct ShutdownTimeouts {
  milliseconds after_failure{3000};   // the others may notice and end by themselves
  milliseconds settled{300};          // the same, where the cause has ended, and ps 0 too
  milliseconds after_success{30000};  // a task ends with success only when the run is over everywhere
  milliseconds after_last{5000};      // the same, where only children are left that nobody waits for
  milliseconds late{1000};            // the same, until tasks that were started too late are asked to end
  milliseconds after_stop{35000};     // a signal to us: the tasks save and end
  milliseconds after_sigterm{5000};
  // Before a task that lost a peer is started again for the first time: the peer may be about to end with an
  // error that no restart can mend.
  milliseconds before_restart{500};
};

struct RestartRules {
  int64_t max = 0;                    // for each child
  int peer_lost_exit = 4;             // the exit code of a child that lost a peer
  milliseconds max_pause{16000};      // before a start; it grows from 0.5 s
  milliseconds never_lost_before{0};  // so soon after its start no child can have been lost
};

class Supervisor {
 public:
  // The children's lines go to `console`; with `json` those that are no objects, such as of a crash, as the
  // text of one. `signals`: SIGINT, SIGTERM, SIGHUP and SIGCHLD.
  Supervisor(ShutdownTimeouts timeouts, RestartRules rules, SignalPipe& signals, Console& console, bool json);
  // For the children: where they name a task that they have given up (ReportLostTask).
  int lost_fd() const { return lost_.write_fd(); }
  // Starts every child. Throws IoError; destruction kills those that run. `stage` is asked when one fails.
  void Start(const std::vector<ChildCommand>& commands, std::function<RunStage()> stage);
  // Returns when all are reaped. Throws IoError where one cannot be started again.
  Outcome Run();

 private:
  // kEnding: the others may end by themselves. kStopping: a signal has asked them to save and end. kAsked:
  // they had to end at once.
  enum class Phase { kRunning, kEnding, kStopping, kAsked, kKilled };

  // One task, as one process after another.
  struct Task {
    ChildCommand command;
    std::unique_ptr<ChildProcess> process;
    TimePoint started;
    bool given_up = false;     // the present process, by the other tasks
    bool missed_stop = false;  // the present process came after the signal to all
    bool asked_late = false;   // the present process, to end
    int64_t restarts = 0;
    std::optional<ChildEnd> end;            // the latest process's, once it has ended
    TimePoint start_at = TimePoint::max();  // when the next one starts
    bool over = false;                      // there will be no next one
  };

  void WaitForEvents();
  void PassLinesOn();
  void PassLinesOn(ChildProcess& child);
  void TakeSignals();
  void TakeLost();
  void ReapChildren();
  void StartAgainOrFinish(Task& task);
  ChildEnd EndOf(const Task& task) const;
  bool IsWorthStart(const ChildEnd& end) const;
  bool IsStartedAgain(const Task& task) const;
  void StartDue();
  void StartAgain(Task& task);
  // The task's end is that of its latest process.
  void Finish(Task& task);
  bool OnlyOptionalLeft() const;
  bool WorkersLeft() const;
  bool OthersRun(const Task& task) const;
  const Task* FirstPs() const;  // null: none
  bool FirstPsIsOver() const;
  bool IsSettled() const;
  bool IsLate(const Task& task) const;
  void AskLate();
  void OnDeadline();
  void SignalAll(int signal);
  // Moves on when the new phase is later than the present one.
  void Enter(Phase phase, milliseconds timeout);
  void Say(const std::string& text);
  bool AllEnded() const { return outcome_.ends.size() == tasks_.size(); }

  const ShutdownTimeouts timeouts_;
  const RestartRules rules_;
  Console& console_;
  const bool json_;
  SignalPipe& signals_;
  LostTaskPipe lost_;
  std::function<RunStage()> stage_;
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  TimePoint deadline_ = TimePoint::max();
  TimePoint ask_late_at_ = TimePoint::max();
  Outcome outcome_;
};

}  // namespace dtrain
