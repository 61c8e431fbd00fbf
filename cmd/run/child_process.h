// ChildProcess: a process that a command has started and listens to: a task of a cluster, ssh that leads to
// one, or a tool. PipeLines: the lines that come out of a pipe.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace dtrain {

// Pipe: both ends of a new pipe, which no child inherits. Closes those that nobody has taken.
class Pipe {
 public:
  explicit Pipe(const std::string& owner);  // throws IoError, which names the owner
  ~Pipe();
  Pipe(Pipe&& other) noexcept;
  Pipe& operator=(Pipe&&) = delete;

  int read_fd() const { return ends_[0]; }
  int write_fd() const { return ends_[1]; }
  // The caller closes it.
  int TakeReadEnd();

 private:
  int ends_[2];
};

// PipeLines: whole lines out of a pipe whose other end writes when it likes.
// Owner: the reader. Thread: its owner's.
class PipeLines {
 public:
  // Longer than any line that people write: a line without an end must not fill the memory.
  static constexpr size_t kMaxBytes = 64 * 1024;
  // Takes the descriptor, which no longer waits; -1: there is nothing to read. A line of more than
  // `max_bytes` comes in pieces.
  explicit PipeLines(int fd = -1, size_t max_bytes = kMaxBytes);
  ~PipeLines();
  PipeLines(const PipeLines&) = delete;
  PipeLines& operator=(const PipeLines&) = delete;

  int fd() const { return fd_; }  // -1 after its end
  // Hands every whole line that is there to `sink`, with its newline; at the end also an unfinished one.
  // Never waits.
  void Read(const std::function<void(const std::string&)>& sink);

 private:
  void Close();

  int fd_;
  const size_t max_bytes_;
  int flags_ = 0;  // as they were: other programs may share the terminal
  std::string unfinished_;
};

// Who hears what a child says: lines with their newlines.
struct ChildSinks {
  std::function<void(const std::string&)> line;    // of standard error
  std::function<void(const std::string&)> report;  // of standard output
};

class ChildProcess;

struct ChildCommand {
  std::string name;                        // "ps 0"
  std::vector<std::string> arguments;      // after the program's name
  std::vector<int> inherited;              // descriptors that stay open in the child, under the same numbers
  bool may_be_lost = false;                // once the run has begun, it may go on when this child fails
  bool can_return = false;                 // once the run has begun, a new process can take this one's place
  std::string program = "/proc/self/exe";  // this one; a name without a slash is looked for in PATH
  std::function<void()> run;               // what the child does in place of a program, if set
  int input = -1;                          // its standard input; -1: there is none
  bool passes = false;                     // its standard output and error are ours
  LogFile* log = nullptr;                  // gets what it says too; stays the caller's
  // How a Supervisor starts it; unset: as a ChildProcess.
  std::function<std::unique_ptr<ChildProcess>(const ChildCommand&, const ChildSinks&)> start;
};

// How a process ended.
struct ProcessExit {
  int code = 0;
  int signal = 0;  // that killed it; 0: it ended by itself
};

// Started, listened to, waited for. It dies with this process, has a process group of its own (so that a
// terminal's Ctrl-C reaches only the parent) and no standard input unless it is given one. Its standard error
// comes here line by line, and so does its standard output, which is its report (cmd/common/report.h).
// Owner: Supervisor, or the command that needs it. Thread: one: the kernel ties the child's life to the
// thread that forked.
class ChildProcess {
 public:
  // Throws IoError where no process can be made. A program that cannot be executed says so and ends
  // with 127.
  explicit ChildProcess(const ChildCommand& command, ChildSinks sinks = {});
  virtual ~ChildProcess();  // kills and reaps what still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Adds what poll() has to wait for. Returns when the child is to be looked at in any case.
  virtual TimePoint Await(std::vector<pollfd>* waiting) const;
  // Hands on what it has said. Never waits.
  void Read();
  // Whether it has ended, now or earlier; what it said last has then been read. Never waits.
  virtual bool HasEnded();
  // Waits for that.
  void Wait();
  // Does nothing to a child that has been reaped.
  virtual void Signal(int signal);
  // To it and all that it has started.
  void KillGroup();

  const std::string& name() const { return command_.name; }
  // Valid after HasEnded().
  const ProcessExit& exit() const { return *exit_; }
  // The last lines, at most kKeptLines, each with its newline; without live lines.
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  static constexpr size_t kKeptLines = 20;

 protected:
  // Starts the command once more; the process before has ended.
  void Start();
  virtual void TakeLine(const std::string& line);
  virtual void TakeReport(const std::string& line);

  const ChildCommand command_;
  const ChildSinks sinks_;
  std::optional<ProcessExit> exit_;  // once it is reaped

 private:
  bool Reap(int options);

  pid_t pid_ = -1;
  std::optional<PipeLines> error_, output_;
  std::deque<std::string> last_lines_;
};

}  // namespace dtrain
