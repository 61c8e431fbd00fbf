// Supervisor: runs the children of `dtrain local` until all have ended: passes their lines on, starts again
// those that die or hang, ends the rest when one fails for good that they need, forwards SIGINT and SIGTERM.
// One event loop; it waits only for events and deadlines. Owner: the local command. Thread: the main thread
// only (see child_process.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "cmd/child_process.h"
#include "cmd/lost_pipe.h"
#include "cmd/post_mortem.h"
#include "cmd/signal_pipe.h"

namespace dtrain {

// How long the parent waits before it helps.
struct Patience {
  milliseconds after_failure{3000};   // the others may notice and end by themselves
  milliseconds after_success{30000};  // a task ends with success only when the run is over everywhere
  milliseconds after_last{5000};      // the same, where only children are left that nobody waits for
  milliseconds after_stop{35000};     // a signal to us: the tasks save and end
  milliseconds after_sigterm{5000};
};

struct RestartRules {
  int64_t most = 0;        // of each child
  int peer_lost_exit = 4;  // the exit code of a child that lost a peer
  milliseconds deaf{0};    // for so long after its start nobody can know that a child is lost
};

// How far the run has come, as its result tells.
enum class RunStage { kStarting, kRunning, kDone };

class Supervisor {
 public:
  // The children's lines go to `console`; with `json` those that are no objects, such as of a crash, as the
  // text of one.
  Supervisor(Patience patience, RestartRules rules, Console& console, bool json);
  // For the children: where they name whom they have given up (TellLost).
  int lost_fd() const { return lost_.write_fd(); }
  // Starts every child. Throws IoError; destruction kills those that run. `stage` is asked when one fails.
  void Start(const std::vector<ChildCommand>& commands, std::function<RunStage()> stage);
  // Returns when all are reaped. Throws IoError where one cannot be started again.
  Outcome Run();

 private:
  enum class Phase { kRunning, kEnding, kStopping, kAsked, kKilled };

  // One task, as one process after another.
  struct Task {
    ChildCommand command;
    std::unique_ptr<ChildProcess> process;
    TimePoint started;
    bool given_up = false;  // the present process, by the other tasks
    int64_t restarts = 0;
    std::optional<ChildEnd> end;            // of the latest process, once it has ended
    TimePoint start_at = TimePoint::max();  // when the next one starts
    bool over = false;                      // there will be no next one
  };

  void WaitForEvents();
  void PassLinesOn();
  void PassLinesOn(ChildProcess& child);
  void TakeSignals();
  void TakeLost();
  void ReapChildren();
  ChildEnd EndOf(const Task& task) const;
  bool IsStartedAgain(const Task& task) const;
  void StartDue();
  void StartAgain(Task& task);
  // The task's end is that of its latest process.
  void Finish(Task& task);
  bool OnlyExpendableLeft() const;
  bool WorkersLeft() const;
  void OnDeadline();
  void SignalAll(int signal);
  // Moves on when the new phase is later than the present one. Only in the first are children started again.
  void Enter(Phase phase, milliseconds patience);
  void Say(const std::string& text);
  bool AllEnded() const { return outcome_.ends.size() == tasks_.size(); }

  const Patience patience_;
  const RestartRules rules_;
  Console& console_;
  const bool json_;
  SignalPipe signals_;
  LostPipe lost_;
  std::function<RunStage()> stage_;
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  TimePoint deadline_ = TimePoint::max();
  Outcome outcome_;
};

}  // namespace dtrain
