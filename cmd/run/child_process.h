// ChildProcess: a process that a command has started and whose output it reads: a task of a cluster, ssh to
// one, or a tool. PipeLines: reads lines from a pipe.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace dtrain {

// Pipe: both ends of a new pipe, which no child inherits. It closes the ends that were not taken.
class Pipe {
 public:
  explicit Pipe(const std::string& owner);  // throws IoError with the owner
  ~Pipe();
  Pipe(Pipe&& other) noexcept;
  Pipe& operator=(Pipe&&) = delete;

  int read_fd() const { return ends_[0]; }
  int write_fd() const { return ends_[1]; }
  // The caller closes the result.
  int TakeReadEnd();

 private:
  int ends_[2];
};

// PipeLines: reads whole lines from a pipe. Owner: the reader. Thread: the owner's.
class PipeLines {
 public:
  // The longest line that is kept whole; a line without an end must not fill the memory.
  static constexpr size_t kMaxBytes = 64 * 1024;
  // Takes the descriptor and makes it non-blocking; -1: there is nothing to read. A line of more than
  // `max_bytes` is delivered in pieces.
  explicit PipeLines(int fd = -1, size_t max_bytes = kMaxBytes);
  ~PipeLines();
  PipeLines(const PipeLines&) = delete;
  PipeLines& operator=(const PipeLines&) = delete;

  int fd() const { return fd_; }  // -1 after the end
  // Passes every complete line to `sink`, with its newline; at the end also an incomplete one. Never waits.
  void Read(const std::function<void(const std::string&)>& sink);

 private:
  void Close();

  int fd_;
  const size_t max_bytes_;
  int flags_ = 0;  // the original flags, which are restored: other programs may share the terminal
  std::string unfinished_;
};

// ChildSinks: the receivers of a child's lines, which end with their newlines.
struct ChildSinks {
  std::function<void(const std::string&)> line;    // from standard error
  std::function<void(const std::string&)> report;  // from standard output
};

class ChildProcess;

struct ChildCommand {
  std::string name;                        // "ps 0"
  std::vector<std::string> arguments;      // after the program's name
  std::vector<int> inherited;              // descriptors that stay open in the child, under the same numbers
  bool may_be_lost = false;                // once the run has begun, it may go on without this child
  bool can_return = false;                 // once the run has begun, a new process can replace this one
  bool has_replica = false;                // the others can save what it had
  std::string program = "/proc/self/exe";  // this program; a name without a slash is searched in PATH
  std::function<void()> run;               // if set, runs in the child in place of a program
  int input = -1;                          // standard input; -1: none
  int orders = -1;         // the writing end of `input`, which never blocks; -1: there is none
  bool passes = false;     // standard output and error are those of this process
  LogFile* log = nullptr;  // also receives the child's lines; the caller's
  // How a Supervisor starts the child; unset: as a ChildProcess.
  std::function<std::unique_ptr<ChildProcess>(const ChildCommand&, const ChildSinks&)> start;
  // Why a Supervisor must not start the child again now; unset or empty: it may.
  std::function<std::string()> why_not_again;
};

// ProcessExit: how a process ended.
struct ProcessExit {
  int code = 0;
  int signal = 0;  // the signal that killed it; 0: it exited
};

// ChildProcess: starts a process, reads its output and reaps it. The child dies with this process. It has a
// process group of its own, so that Ctrl-C at a terminal reaches only the parent, and no standard input
// unless it is given one. Its standard error and its standard output, which carries its report
// (cmd/common/report.h), are read line by line. Owner: Supervisor, or the command that needs it. Thread: one,
// because the kernel ties the child's life to the thread that forked.
class ChildProcess {
 public:
  // Throws IoError if no process can be made. If the program cannot be executed, the child says so and exits
  // with 127.
  explicit ChildProcess(const ChildCommand& command, ChildSinks sinks = {});
  virtual ~ChildProcess();  // kills and reaps a child that still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Adds what poll() has to wait for. Returns the time at which to call HasEnded() in any case.
  virtual TimePoint Await(std::vector<pollfd>* waiting) const;
  // Passes on the lines that have arrived. Never waits.
  void Read();
  // Whether the child has ended. If so, all its output has been read. Never waits.
  virtual bool HasEnded();
  // Waits until the child has ended.
  void Wait();
  // Sends a signal. Does nothing after the child was reaped.
  virtual void Signal(int signal);
  // Kills the child and all processes in its group.
  void KillGroup();

  const std::string& name() const { return command_.name; }
  // How the child ended; only after HasEnded().
  const ProcessExit& exit() const { return *exit_; }
  // Whether it has written a line to standard error, other than live lines.
  bool spoke() const { return spoke_; }

 protected:
  // Starts the command again after the process has ended.
  void Start();
  virtual void TakeLine(const std::string& line);
  virtual void TakeReport(const std::string& line);

  const ChildCommand command_;
  const ChildSinks sinks_;
  std::optional<ProcessExit> exit_;  // set when the child is reaped

 private:
  bool Reap(int options);

  pid_t pid_ = -1;
  std::optional<PipeLines> error_, output_;
  bool spoke_ = false;
};

}  // namespace dtrain
