// FailureKinds: the ways in which a run fails or is stopped, and what the person who has started it must
// learn then, however the tasks were started: the exit code, the result's error with its cause, task and
// host, and the cause on standard error once. The tests of dtrain local, of dtrain launch and of tasks by
// hand run this one list.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {

// How the tasks are started.
constexpr unsigned kByLocal = 1, kInProcess = 2, kByLaunch = 4, kByHand = 8;
constexpr unsigned kByParent = kByLocal | kByLaunch, kEveryWay = kByParent | kInProcess | kByHand;

// A run that is in its training; `process`: what a person has started: the command, or by hand ps 0.
struct FailingRun {
  Process& process;
  std::function<pid_t(const std::string& role, int index)> pid_of;

  void Kill(const std::string& role, int index, int signal) const;
};

// In texts, {dir} stands for a directory of this run, and {taken} for an address at which another program
// listens.
struct FailureKind {
  std::string name;
  unsigned ways = kEveryWay;
  int code = 2;
  std::string status;
  std::string task;               // that is to blame, "worker 1", or "worker" for any; empty: no single one
  std::string cause;              // what error and standard error say; empty: there is no error
  std::string job;                // YAML without the cluster
  std::vector<std::string> more;  // further arguments
  std::function<void(const std::string& dir)> prepare;
  // Called when every worker has taken steps; may be empty.
  std::function<void(const FailingRun& run)> disturb;
  // By hand, the task that a person looks at: the others do not know of the failure, or say the same.
  std::string told_by = "ps 0";
  std::string absent = {};  // by hand, the task that nobody starts
  std::string thief = {};   // by hand, the task that has the key of worker 0; empty: there are no keys
};

std::vector<FailureKind> FailureKinds();

// A kind with its texts for a directory, which has what the run needs.
FailureKind Prepared(const FailureKind& kind, const std::string& dir, const std::string& taken = "");

// Checks what somebody has learnt: `result` and `said`, standard error, of the process that ended with
// `code`. `hosts`: names of this host.
void CheckTold(const FailureKind& kind, int code, const Json& result, const std::string& said,
               const std::vector<std::string>& hosts);

}  // namespace dtrain::testing
