// ChildProcess: one task of `dtrain local` as a process of its own: started, listened to, waited for.
// It dies with this process, has a process group of its own (so that a terminal's Ctrl-C reaches only the
// parent), no standard input, and its standard error comes here line by line.
// Owner: Supervisor. Thread: the main thread only: the kernel ties the child's life to the thread that
// forked.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

struct ChildCommand {
  std::string name;                        // "ps 0"
  std::vector<std::string> arguments;      // after the program's name
  std::vector<int> inherited;              // descriptors that stay open in the child, under the same numbers
  bool expendable = false;                 // once the run has begun, it may go on when this child fails
  bool can_return = false;                 // once the run has begun, a new process can take this one's place
  std::string program = "/proc/self/exe";  // this one
};

class ChildProcess {
 public:
  // Throws IoError where no process can be made. A program that cannot be executed ends with 127.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();  // kills and reaps what still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Of the child's standard error; -1 after its end.
  int output_fd() const { return output_fd_; }
  // Hands every whole line that is there to `sink`, with its newline; at the end also an unfinished one.
  // Never waits.
  void ReadLines(const std::function<void(const std::string&)>& sink);
  // Reaps the child if it has ended; true when it has, now or earlier. Never waits.
  bool HasEnded();
  // Only of a child that has not been reaped.
  void Signal(int signal);

  const std::string& name() const { return name_; }
  bool expendable() const { return expendable_; }
  // As waitpid() gives it; valid after HasEnded().
  int wait_status() const { return *wait_status_; }
  // The last lines, at most kKeptLines, each with its newline; without live lines.
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  static constexpr size_t kKeptLines = 20;

 private:
  void TakeLine(std::string line, const std::function<void(const std::string&)>& sink);

  const std::string name_;
  const bool expendable_;
  pid_t pid_ = -1;
  int output_fd_ = -1;
  std::string unfinished_;
  std::deque<std::string> last_lines_;
  std::optional<int> wait_status_;
};

}  // namespace dtrain
