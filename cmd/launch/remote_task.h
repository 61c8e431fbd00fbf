// RemoteTask: a task of `dtrain launch` as a child of the launcher, whose Supervisor sees in it the task
// itself. The process here is ssh; there, and without ssh here, a guard is the task's parent
// (guard_command.cc). KeepAlive: the pipes that lead to the guards, and who says there that the launcher is
// alive. Owner: the launch command. Thread: its own.
//
// The two ends talk in lines of text, so that any shell, ssh or person can stand between them. To the guard,
// on its standard input, come the orders below and now and then kAliveLine. From it, on its standard output,
// come its words below and the report of the task (cmd/common/report.h). What a login shell prints before
// them is passed over.
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
#include "trainer/config/config.h"

namespace dtrain {

constexpr char kAliveLine[] = "alive";

struct Order {
  int signal;  // that the guard sends to the task
  const char* line;
};
constexpr Order kOrders[] = {{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGKILL, "KILL"}};

constexpr char kStartedWord[] = "@started";  // the task is
constexpr char kExitWord[] = "@exit";        // and the task's exit code; the last line
constexpr char kSignalWord[] = "@signal";    // and the signal that killed the task; the last line

// KeepAlive: a pipe to the standard input of each task, for all its connections, and one process that writes
// kAliveLine into all of them every second. A process of its own, so that a launcher that is stopped (Ctrl-Z)
// or waits for a disk loses no task. It dies with the launcher.
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
  // `command` leads to the guard on `machine`; its input is the read end of `orders`. `results` tell whether
  // the run has begun. Throws IoError.
  RemoteTask(const ChildCommand& command, const ChildSinks& sinks, const Machine& machine,
             const Config& config, const Pipe& orders, const RunResults& results);

  TimePoint Await(std::vector<pollfd>* waiting) const override;
  // Connects again where the machine has turned us away. The exit is that of the task. Where it could not be
  // started it is 2, and that of a lost peer where the connection broke, or the run had begun; a line of the
  // task's log says why.
  bool HasEnded() override;
  // To the task there. SIGKILL that is repeated, or without an effect for 2 s, ends the connection; so does
  // any signal to a task that has not started.
  void Signal(int signal) override;

 private:
  void TakeLine(const std::string& line) override;
  void TakeReport(const std::string& line) override;
  // Whether the next connection is to come.
  bool WaitsToRetry();
  ProcessExit End();
  ProcessExit Failed(int exit_code, const std::string& why);
  std::string NoStart() const;

  const Machine& machine_;
  const Config& config_;
  const Pipe& orders_;
  const RunResults& results_;
  const std::string login_;  // what a person has to write behind ssh
  Logger log_;
  const TimePoint start_by_;
  Retry retry_;
  std::optional<TimePoint> retry_at_;
  bool started_ = false;
  bool too_late_ = false;                  // it has not started by then
  std::string last_words_;                 // of ssh or the shell there, not of the task
  std::optional<ProcessExit> reported_;    // by the guard
  int fatal_signal_ = 0;                   // that the task is taken to die of where nothing is heard of it
  TimePoint deadline_ = TimePoint::max();  // of the connection
  bool over_ = false;
};

}  // namespace dtrain
