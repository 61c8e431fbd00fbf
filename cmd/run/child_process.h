// ChildProcess: one task of a cluster, or what stands for it, as a process of its own; and the two kinds of
// pipe that its parent reads: PipeLines and LostTaskPipe.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace dtrain {

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

// LostTaskPipe: how the children of `dtrain local` tell it which task they have given up, so that one that
// hangs is ended and started again. Each task is a line with its name, "ps 1". Owner: the parent, which
// reads; every child inherits the other end. Thread: any.
class LostTaskPipe {
 public:
  LostTaskPipe();
  ~LostTaskPipe();
  LostTaskPipe(const LostTaskPipe&) = delete;
  LostTaskPipe& operator=(const LostTaskPipe&) = delete;

  // Readable while there is something to take. Both ends are open as long as this object lives.
  int read_fd() const { return ends_[0]; }
  int write_fd() const { return ends_[1]; }
  // The tasks that the children have named since the last call. Never waits.
  std::vector<std::string> Take();

 private:
  int ends_[2];
  std::string unfinished_;
};

// For a child: writes into the end that it has inherited. Never waits: a full pipe already says enough.
void ReportLostTask(int fd, const std::string& name);

struct ChildCommand {
  std::string name;                        // "ps 0"
  std::vector<std::string> arguments;      // after the program's name
  std::vector<int> inherited;              // descriptors that stay open in the child, under the same numbers
  bool may_be_lost = false;                // once the run has begun, it may go on when this child fails
  bool can_return = false;                 // once the run has begun, a new process can take this one's place
  std::string program = "/proc/self/exe";  // this one; a name without a slash is looked for in PATH
  int input = -1;                          // its standard input; -1: there is none
  int output = -1;                         // its standard output; -1: ours
  bool error_passes = false;               // its standard error is ours
  LogFile* log = nullptr;                  // gets what it says too; stays the caller's
  int kill_signal = SIGKILL;               // how it is ended at once, where it can do that better itself
};

// Started, listened to, waited for. It dies with this process, has a process group of its own (so that a
// terminal's Ctrl-C reaches only the parent), no standard input unless it is given one, and its standard
// error comes here line by line. Owner: Supervisor; the guard and the relay of `dtrain launch`. Thread: one:
// the kernel ties the child's life to the thread that forked.
class ChildProcess {
 public:
  // Throws IoError where no process can be made. A program that cannot be executed says so and ends
  // with 127.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();  // kills and reaps what still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The child's standard error; -1 after its end.
  int output_fd() const { return lines_->fd(); }
  // Hands every whole line that is there to `sink`, with its newline; at the end also an unfinished one.
  // Never waits.
  void ReadLines(const std::function<void(const std::string&)>& sink);
  // Reaps the child if it has ended; true when it has, now or earlier. Never waits.
  bool HasEnded();
  // Waits for that.
  void Wait();
  // Only to a child that has not been reaped. SIGKILL is `kill_signal` the first time.
  void Signal(int signal);
  // To it and all that it has started.
  void KillGroup();

  const std::string& name() const { return name_; }
  bool may_be_lost() const { return may_be_lost_; }
  // As waitpid() gives it; valid after HasEnded().
  int wait_status() const { return *wait_status_; }
  // The last lines, at most kKeptLines, each with its newline; without live lines.
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  static constexpr size_t kKeptLines = 20;

 private:
  void TakeLine(const std::string& line, const std::function<void(const std::string&)>& sink);

  const std::string name_;
  const bool may_be_lost_;
  const int kill_signal_;
  LogFile* const log_;
  bool asked_to_die_ = false;
  pid_t pid_ = -1;
  std::optional<PipeLines> lines_;
  std::deque<std::string> last_lines_;
  std::optional<int> wait_status_;
};

}  // namespace dtrain
