// ChildProcess: one task of a cluster, or what stands for it, as a process of its own: started, listened to,
// waited for. It dies with this process, has a process group of its own (so that a terminal's Ctrl-C reaches
// only the parent), no standard input unless it is given one, and its standard error comes here line by line.
// Owner: Supervisor; the guard and the relay of `dtrain launch`. Thread: one: the kernel ties the child's
// life to the thread that forked.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "cmd/pipe_lines.h"

namespace dtrain {

struct ChildCommand {
  std::string name;                        // "ps 0"
  std::vector<std::string> arguments;      // after the program's name
  std::vector<int> inherited;              // descriptors that stay open in the child, under the same numbers
  bool expendable = false;                 // once the run has begun, it may go on when this child fails
  bool can_return = false;                 // once the run has begun, a new process can take this one's place
  std::string program = "/proc/self/exe";  // this one; a name without a slash is looked for in PATH
  int input = -1;                          // its standard input; -1: there is none
  int output = -1;                         // its standard output; -1: ours
  bool error_passes = false;               // its standard error is ours
  LogFile* log = nullptr;                  // gets what it says too; stays the caller's
  int kill_signal = SIGKILL;               // what it takes for "end at once", if it can do that better itself
};

class ChildProcess {
 public:
  // Throws IoError where no process can be made. A program that cannot be executed says so and ends
  // with 127.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();  // kills and reaps what still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Of the child's standard error; -1 after its end.
  int output_fd() const { return lines_->fd(); }
  // Hands every whole line that is there to `sink`, with its newline; at the end also an unfinished one.
  // Never waits.
  void ReadLines(const std::function<void(const std::string&)>& sink);
  // Reaps the child if it has ended; true when it has, now or earlier. Never waits.
  bool HasEnded();
  // Waits for that.
  void Wait();
  // Only of a child that has not been reaped. SIGKILL is `kill_signal` the first time.
  void Signal(int signal);
  // To it and all that it has started.
  void KillGroup();

  const std::string& name() const { return name_; }
  bool expendable() const { return expendable_; }
  // As waitpid() gives it; valid after HasEnded().
  int wait_status() const { return *wait_status_; }
  // The last lines, at most kKeptLines, each with its newline; without live lines.
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  static constexpr size_t kKeptLines = 20;

 private:
  void TakeLine(const std::string& line, const std::function<void(const std::string&)>& sink);

  const std::string name_;
  const bool expendable_;
  const int kill_signal_;
  LogFile* const log_;
  bool asked_to_die_ = false;
  pid_t pid_ = -1;
  std::optional<PipeLines> lines_;
  std::deque<std::string> last_lines_;
  std::optional<int> wait_status_;
};

}  // namespace dtrain
