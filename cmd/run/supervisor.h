// Supervisor: runs the children of `dtrain local` and `dtrain launch` until all have ended. It passes on
// their lines, takes their reports, restarts children that die or hang, ends the others when a child that
// they need fails for good, and forwards SIGINT, SIGTERM and SIGHUP. It is one event loop that waits only for
// events and deadlines. Owner: the command. Thread: the main thread only (see child_process.h).
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
#include "trainer/config/cluster_config.h"

namespace dtrain {

// ShutdownTimeouts: how long the parent waits for its children before it ends them.
struct ShutdownTimeouts {
  milliseconds after_failure{3000};   // the others may notice the failure and end by themselves
  milliseconds settled{300};          // the same, if the cause has ended, and ps 0 too
  milliseconds after_success{30000};  // a task succeeds only when the run is over everywhere
  milliseconds after_last{5000};      // the same, if only optional children are left
  milliseconds late{1000};            // the same, before tasks that were started too late are told to end
  milliseconds after_stop{35000};     // after a signal to us: the tasks save and end
  milliseconds after_sigterm{5000};
  // The pause before the first restart of a task that lost a peer: the peer may be about to end with an error
  // that no restart can mend.
  milliseconds before_restart{500};
};

struct RestartRules {
  int64_t max = 0;                    // restarts of each child
  int peer_lost_exit = 4;             // the exit code of a child that lost a peer
  milliseconds max_pause{16000};      // before a restart; pauses grow from 0.5 s
  milliseconds never_lost_before{0};  // a child cannot have been lost so soon after its start
};

// LineRules: which lines of children are shown, and how.
struct LineRules {
  bool json = false;   // a line that is not an object, such as a crash message, becomes the text of one
  bool quiet = false;  // errors only
};

// Returns the rules of a config.
RestartRules RestartRulesOf(const FailureConfig& failure);
ShutdownTimeouts TimeoutsOf(const FailureConfig& failure);

// Returns the command for a task without its arguments: its name, whether a new process can replace it, and
// whether the run can go on without it.
ChildCommand ChildFor(const Config& spec, TaskId task);
// "--role worker --index 1"
std::vector<std::string> TaskWords(TaskId task);

class Supervisor {
 public:
  // Lines of children go to `console`. `signals` must deliver SIGINT, SIGTERM, SIGHUP and SIGCHLD.
  Supervisor(ShutdownTimeouts timeouts, RestartRules rules, SignalPipe& signals, Console& console,
             LineRules lines);
  // Starts every child. Throws IoError; the destructor kills the children that run.
  void Start(const std::vector<ChildCommand>& commands);
  // What the children have reported so far.
  const RunResults& results() const { return outcome_.results; }
  // Takes a line that the child `name` reports.
  void TakeReport(const std::string& name, const std::string& line);
  // Runs the children. Returns when all have ended for good.
  Outcome Run();

 private:
  // kEnding: the others may end by themselves. kStopping: a signal has asked them to save and end. kAsked:
  // they were told to end at once.
  enum class Phase { kRunning, kEnding, kStopping, kAsked, kKilled };

  // One task, which may be several processes, one after another.
  struct Task {
    ChildCommand command;
    std::unique_ptr<ChildProcess> process;
    TimePoint started;
    bool begun = false;        // the current process has reported that the run has begun, or goes on
    bool given_up = false;     // other tasks have given up the current process
    std::string why_given_up;  // as they have said
    bool missed_stop = false;  // the current process was started after the signal to all
    bool told_to_end = false;  // the current process was told to end because it is late
    std::string error;         // why the current process ends, as it has reported
    int64_t restarts = 0;
    std::optional<ChildEnd> end;            // of the latest process, once it has ended
    TimePoint start_at = TimePoint::max();  // when the next process starts
    bool over = false;                      // there will be no next process
  };

  void WaitForEvents();
  std::unique_ptr<ChildProcess> StartChild(const ChildCommand& command);
  void ReadAll();
  void PassOn(const std::string& name, const std::string& line);
  void TakeSignals();
  // Called when other tasks have given up a task: "worker 1: ...".
  void TakeLost(const std::string& text);
  void ReapChildren();
  void StartAgainOrFinish(Task& task);
  ChildEnd EndOf(const Task& task) const;
  bool IsWorthStart(const ChildEnd& end) const;
  bool IsStartedAgain(const Task& task) const;
  void StartDue();
  void StartAgain(Task& task);
  // Makes the end of the latest process the end of the task.
  void Finish(Task& task);
  void TellPs(const ChildEnd& killed);
  bool OnlyOptionalLeft() const;
  bool WorkersLeft() const;
  bool OthersRun(const Task& task) const;
  const Task* FirstPs() const;  // null: there is none
  bool FirstPsIsOver() const;
  bool IsSettled() const;
  bool WaitsForGonePs(const Task& first_ps) const;
  bool IsLate(const Task& task) const;
  void StopLateTasks();
  void OnDeadline();
  void SignalAll(int signal);
  // Moves to `phase` if it is later than the current one.
  void Enter(Phase phase, milliseconds timeout);
  void Say(const std::string& text, LogLevel level = LogLevel::kInfo, const char* event = nullptr);
  RunStage Stage() const { return outcome_.results.Stage(); }
  bool AllEnded() const { return outcome_.ends.size() == tasks_.size(); }

  const ShutdownTimeouts timeouts_;
  const RestartRules rules_;
  Console& console_;
  const LineRules lines_;
  SignalPipe& signals_;
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  TimePoint deadline_ = TimePoint::max();
  TimePoint stop_late_at_ = TimePoint::max();
  Outcome outcome_;
};

}  // namespace dtrain
