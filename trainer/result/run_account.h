// RunAccount: what a result says beside the figures of RunSummary: how and why the run ended, what happened
// in it, and which run it was. The process that writes the result fills it. Thread: any; plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "trainer/config/cluster_config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Blame: which task made a run fail, and why.
struct Blame {
  std::optional<TaskId> task;  // unset: none of the tasks did
  std::string host;            // of that task; empty: it is not known
  std::string error;           // one line
};

// Returns the task of this name, "worker 1"; nothing if it is not one.
std::optional<TaskId> TaskNamed(const std::string& name);
// Returns who is to blame for a failure that `teller` tells with `text`. A message about another task begins
// with its name: "worker 1 (10.0.0.4:9002; node3, pid 17) ended the run with exit code 2: ...", or names whom
// the teller has waited for in vain. Any other one is about the teller itself, which is on `host`, and so is
// one about a ps that refuses it.
Blame BlameFor(TaskId teller, const std::string& host, const std::string& text);
// Returns "worker 1 on node3: " and the error, without what is not known.
std::string BlameText(const Blame& blame);

// TaskRestart: a task that was started again.
struct TaskRestart {
  std::string task;        // "worker 1"
  int64_t wall_nanos = 0;  // when
  std::string why;         // "was killed by SIGKILL"
};

struct RunAccount {
  // A run may warn without end; a reader of its result needs the first ones.
  static constexpr size_t kMaxWarnings = 50;
  static constexpr size_t kMaxRestarts = 200;

  std::optional<int> exit_code;
  Blame blame;  // of a run that has failed
  std::vector<std::string> logs;
  std::vector<TaskRestart> restarts;
  std::vector<std::string> warnings;  // "worker 1: ...", each once
  Json config;                        // every key with its value in effect; null: it was not read
  std::string config_digest;          // of the keys that all tasks have in common
  std::optional<uint64_t> seed;
  RunIdentity identity;
  std::string version;
  std::string commit;  // empty: it is not known
  int64_t start_nanos = 0;
  int64_t end_nanos = 0;

  // Takes what ps 0 knows of the run; hosts that it does not know stay as they are. Does nothing before the
  // run has begun.
  void Learn(const RunIdentity& known);
  // Takes a warning, unless it is there already or there are kMaxWarnings.
  void AddWarning(const std::string& task, const std::string& text);
};

// Returns the JSON document of `--result`, indented, with a final newline. Keys that do not apply are null.
// `earlier`: the document of a run that was done, or anything else. A run that is already done measures
// nothing, so it has the figures of that one if both have the same weights.
std::string ToJson(const RunSummary& summary, const RunAccount& account = {}, const Json& earlier = nullptr);

}  // namespace dtrain
