// Process: the real dtrain binary under test: started, watched, signalled, and never left behind.
// Output is collected by a thread of its own, so that a talkative child cannot block. All waiting is for
// events, with a deadline. Owner: the test. Thread: the test's.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace dtrain::testing {

// Longer than anything takes under sanitizers on a busy machine, and than such a machine has been seen to
// give a process no time at all: reached only when something hangs. ThreadSanitizer makes a job ten times as
// long.
#ifdef __SANITIZE_THREAD__
constexpr milliseconds kPatience{600000};
#else
constexpr milliseconds kPatience{180000};
#endif

// An argument of `dtrain local` or `dtrain launch` that is taken out: a directory of the run is made as for a
// user who says nothing about it.
constexpr char kMakesDirectory[] = "--run-as-a-user-does";

// What a Process runs.
struct Program {
  std::string path = "cmd/dtrain";       // in the runfiles
  std::vector<std::string> environment;  // "NAME=value", before the test's own
  std::string directory = {};            // where it works; empty: where the test does
};

class Process {
 public:
  // Runs `dtrain arguments...` in the test's working directory. Two starts never wait for each other.
  // `dtrain local`, `dtrain launch` and a ps make no directory of the run, unless the arguments name one
  // (--run); kMakesDirectory stands for the default. With `terminal_columns` standard error is a terminal so
  // wide; with `output_path` standard output is that file.
  explicit Process(const std::vector<std::string>& arguments, int terminal_columns = 0,
                   const char* output_path = nullptr, const Program& program = {});
  Process(const std::vector<std::string>& arguments, const Program& program)
      : Process(arguments, 0, nullptr, program) {}
  ~Process();  // kills and reaps what still runs, and checks that nothing else of it does
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // True when it has ended by the deadline; its output is then complete.
  bool WaitForEnd(milliseconds patience = kPatience);
  // True when standard error contains `text` by the deadline; false also when it ends without.
  bool WaitForLine(const std::string& text, milliseconds patience = kPatience);
  // The same when it is there so often.
  bool WaitForLines(const std::string& text, int times, milliseconds patience = kPatience);
  // To this process only; nothing when it has ended.
  void Signal(int signal);

  pid_t pid() const { return pid_; }
  // After WaitForEnd(): the exit code, or 128 + signal.
  int exit_code();
  double seconds();  // from start to end
  std::string standard_output();
  std::string standard_error(size_t from = 0);  // behind so many bytes of it
  // Pids of its own children now.
  std::vector<pid_t> Children() const;

 private:
  void Collect(int output, int error);

  TimePoint begun_;
  const std::string mark_;  // in the environment of all its processes
  pid_t pid_ = -1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  std::string error_;
  bool ended_ = false;
  int wait_status_ = 0;
  TimePoint ended_at_;
  std::thread collector_;
};

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Runs to the end and returns the exit code; -1 when it hangs.
int RunToEnd(Process& process);
// Checks that it ends with `code`; a failure shows the end of what it said.
void CheckEnd(Process& process, int code = 0);
// The same of each; `tasks` are pointers.
template <typename Tasks>
void CheckEnds(const Tasks& tasks, int code = 0) {
  for (const auto& task : tasks) CheckEnd(*task, code);
}

// A command that has ended: for tests of what commands say, which wait for nothing else.
struct Done {
  int code;
  std::string output, error;
};

Done Run(const std::vector<std::string>& arguments, const Program& program = {});

// Says on standard output that the running test case is skipped, and why: a line that scripts/test.sh counts,
// once for each case.
void Skip(const std::string& why);

// The command line of a process as one text with spaces; empty when it is gone.
std::string CommandLine(pid_t pid);

// Makes orphans of our children our own, so that NoneLeft() sees them. Once, at the start of a test.
void AdoptOrphans();
// True when no child and no adopted orphan is alive by the deadline; reaps them. Every Process of the test
// has ended before.
bool NoneLeft(milliseconds patience = kPatience);

// A disk that is full for one process: from now on no file of it grows, until it is given room.
void FillDiskOf(pid_t pid);
void GiveRoomTo(pid_t pid);

}  // namespace dtrain::testing
