// RunningJob: a job of the real binary that goes on while a test kills its tasks: `dtrain local`, which
// starts them again (failure.restarts), or tasks by hand over TCP, which the test starts again. Owner: the
// test. Thread: that of the test, which stays until the job is gone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {

struct TaskName {
  std::string role;
  int index;
  std::string text() const;  // "ps 1"
  bool operator<(const TaskName& other) const { return text() < other.text(); }
};

class RunningJob {
 public:
  struct Spec {
    int ps = 2, workers = 2;
    bool tcp = false;
    std::string directory;                // it has the config, and gets the result
    std::string sections;                 // of the config, without cluster
    std::vector<std::string> words = {};  // further arguments of each task
    bool keys = false;
    Program program = {};
  };
  // Writes the config. Call Start() once.
  explicit RunningJob(const Spec& spec);
  void Start();

  // By hand: the addresses of the ps; further arguments of a task, before it is started; a task that is
  // started again; and another process of it, beside the one that is there.
  std::vector<std::string> addresses() const;
  void Give(const TaskName& task, const std::vector<std::string>& words) { words_of_[task] = words; }
  void Start(const TaskName& task);
  std::unique_ptr<Process> Another(const TaskName& task) const;
  // Sends a signal; false: the task is not there.
  bool Signal(const TaskName& task, int signal);
  // SIGKILL to all of these in one moment. By hand they are started again at once. Returns how many were
  // there.
  int Kill(const std::vector<TaskName>& tasks);
  bool ended(const TaskName& task) { return processes_.at(task)->WaitForEnd(milliseconds(0)); }
  Process& process(const TaskName& task) { return *processes_.at(task); }

  // True when the logs have a text so often by the deadline; false also when the run ends without.
  bool WaitFor(const std::string& text, int times = 1, milliseconds patience = kPatience);
  // The same of a line of a task.
  bool WaitFor(const TaskName& task, const std::string& text, milliseconds patience = kPatience);
  // True when all have ended by the deadline.
  bool WaitForEnd(milliseconds patience = kPatience);
  // After that: the exit code of `dtrain local`; by hand the first that is not 0.
  int exit_code();
  // What all have said, those that were killed too.
  std::string log();
  std::string result() const { return spec_.directory + "/result.json"; }

 private:
  // True when `count`, added up over the lines of all logs, comes to `times` by the deadline.
  bool WaitForLines(const std::function<int(const std::string& lines)>& count, int times,
                    milliseconds patience);

  const Spec spec_;
  std::vector<std::unique_ptr<ReservedPort>> ports_;
  std::string config_, keys_, log_of_killed_;
  std::map<TaskName, std::vector<std::string>> words_of_;
  std::map<TaskName, std::unique_ptr<Process>> processes_;  // by hand
  std::unique_ptr<Process> local_;
};

// How often a text has the part.
int CountOf(const std::string& text, const std::string& part);

}  // namespace dtrain::testing
