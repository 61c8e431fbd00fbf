// Supervisor: runs the children of `dtrain local` and of `dtrain launch` until all have ended: passes their
// lines on, takes their reports, starts again those that die or hang, ends the rest when one fails for good
// that they need, forwards SIGINT, SIGTERM and SIGHUP. One event loop; it waits only for events and
// deadlines. Owner: the command. Thread: the main thread only (see child_process.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/run/child_process.h"
#include "cmd/run/exit_verdict.h"
#include "trainer/config/config.h"

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

// Those of a config.
RestartRules RestartRulesOf(const FailureConfig& failure);
ShutdownTimeouts TimeoutsOf(const FailureConfig& failure);

// The child that is this task, wherever it runs: its name, and whether it can return or be lost; no arguments
// yet.
ChildCommand ChildFor(const Config& spec, TaskId task);
// "--role worker --index 1"
std::vector<std::string> TaskWords(TaskId task);

class Supervisor {
 public:
  // The children's lines go to `console`; with `json` those that are no objects, such as of a crash, as the
  // text of one. `signals`: SIGINT, SIGTERM, SIGHUP and SIGCHLD.
  Supervisor(ShutdownTimeouts timeouts, RestartRules rules, SignalPipe& signals, Console& console, bool json);
  // Starts every child. Throws IoError; destruction kills those that run.
  void Start(const std::vector<ChildCommand>& commands);
  // What they have reported so far.
  const RunResults& results() const { return outcome_.results; }
  // A line that the child of that name reports.
  void TakeReport(const std::string& name, const std::string& line);
  // Returns when all have ended, for good.
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
    bool begun = false;        // the present process has said that the run has begun, or goes on
    bool given_up = false;     // the present process, by the other tasks
    bool missed_stop = false;  // the present process came after the signal to all
    bool asked_late = false;   // the present process, to end
    int64_t restarts = 0;
    std::optional<ChildEnd> end;            // the latest process's, once it has ended
    TimePoint start_at = TimePoint::max();  // when the next one starts
    bool over = false;                      // there will be no next one
  };

  void WaitForEvents();
  std::unique_ptr<ChildProcess> StartChild(const ChildCommand& command);
  void ReadAll();
  void PassOn(const std::string& name, const std::string& line);
  void TakeSignals();
  // The other tasks have given it up.
  void TakeLost(const std::string& name);
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
  bool WaitsInVain(const Task& first_ps) const;
  bool IsLate(const Task& task) const;
  void AskLate();
  void OnDeadline();
  void SignalAll(int signal);
  // Moves on when the new phase is later than the present one.
  void Enter(Phase phase, milliseconds timeout);
  void Say(const std::string& text);
  RunStage Stage() const { return outcome_.results.Stage(); }
  bool AllEnded() const { return outcome_.ends.size() == tasks_.size(); }

  const ShutdownTimeouts timeouts_;
  const RestartRules rules_;
  Console& console_;
  const bool json_;
  SignalPipe& signals_;
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  TimePoint deadline_ = TimePoint::max();
  TimePoint ask_late_at_ = TimePoint::max();
  Outcome outcome_;
};

}  // namespace dtrain
