// RemoteTask: a task of `dtrain launch` as a child of the launcher; its Supervisor treats it like the task
// itself. The child process here is ssh. On the other machine a guard (guard_command.cc) is the parent of the
// task; on this machine the guard is the child itself.
// KeepAlive: pipes to the guards, and a process that tells them that the launcher is alive.
// Owner: the launch command. Thread: one.
//
// The protocol is lines of text, so that any shell, ssh or a person can stand between. The guard reads on
// standard input first the keys of the task, if it has any, then the orders below, once a second kAliveLine,
// and for a ps lines about killed tasks (kLostWord), which it passes on. It writes on standard output the
// words below and the report of the task (cmd/common/report.h). The launcher ignores what a login shell
// prints before them.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/launch/plan.h"
#include "cmd/launch/ssh.h"
#include "cmd/run/child_process.h"
#include "cmd/run/exit_verdict.h"
#include "trainer/config/choices.h"

namespace dtrain {

constexpr char kAliveLine[] = "alive";
constexpr char kKeyWord[] = "key";    // followed by a line of the task's keys; they come before all orders
constexpr char kKeysLine[] = "keys";  // all keys have come

struct Order {
  int signal;  // for the guard to send to the task
  const char* line;
};
constexpr Order kOrders[] = {{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGKILL, "KILL"}};

constexpr char kStartedWord[] = "@started";  // the task has started
constexpr char kExitWord[] = "@exit";        // followed by the task's exit code; the last line
constexpr char kSignalWord[] = "@signal";    // followed by the signal that killed the task; the last line

// KeepAlive: a pipe to the standard input of each guard, which serves all its connections, and a process that
// writes kAliveLine into all pipes every second. It is a separate process, so that a launcher that is stopped
// (Ctrl-Z) or waits for a disk loses no task. It dies with the launcher.
class KeepAlive {
 public:
  explicit KeepAlive(size_t tasks);  // throws IoError
  const Pipe& pipe(size_t task) const { return pipes_[task]; }

 private:
  std::vector<Pipe> pipes_;
  std::optional<ChildProcess> process_;
};

class RemoteTask : public ChildProcess {
 public:
  // `command` runs the guard on `machine` with the read end of `orders` as its input. `keys`: the lines of
  // the task's keys; empty: it has none. `results` tell whether the run has begun. Throws IoError.
  RemoteTask(const ChildCommand& command, const ChildSinks& sinks, const Machine& machine,
             const Config& config, const Pipe& orders, std::string keys, const RunResults& results);

  TimePoint Await(std::vector<pollfd>* waiting) const override;
  // Retries the connection if the machine refused it. The exit is that of the task. If the task could not be
  // started it is 2; if the connection broke, or the run had begun already, it is that of a lost peer. A line
  // in the task's log says why, and so does a report.
  bool HasEnded() override;
  // Sends the signal to the remote task. A repeated SIGKILL, one without effect for 2 s, or any signal to a
  // task that has not started ends the connection.
  void Signal(int signal) override;

 private:
  void TakeLine(const std::string& line) override;
  void TakeReport(const std::string& line) override;
  void SendKeys();
  void KeepEnd(const std::string& line);
  // Whether it is waiting to connect again.
  bool WaitsToRetry();
  ProcessExit End();
  ProcessExit Failed(int exit_code, const std::string& why);
  std::string StartFailureText() const;

  const Machine& machine_;
  const Config& config_;
  const Pipe& orders_;
  const std::string keys_;
  const RunResults& results_;
  const std::string login_;  // what a person types after `ssh` to log in
  Logger log_;
  const TimePoint start_by_;
  Retry retry_;
  std::optional<TimePoint> retry_at_;
  bool started_ = false;
  bool too_late_ = false;                  // it has not started before start_by_
  std::string last_error_;                 // of ssh or the remote shell, not of the task
  std::optional<ProcessExit> reported_;    // by the guard
  int fatal_signal_ = 0;                   // what the task is assumed to have died of if no report comes
  TimePoint deadline_ = TimePoint::max();  // for the end of the connection
  bool over_ = false;
};

}  // namespace dtrain
