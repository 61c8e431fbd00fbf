// The outcome of a run of child processes: the result that they report (RunResults), which of several dead
// tasks was the cause, what to tell the user on standard error, and the exit code of dtrain local and dtrain
// launch. Plain functions on plain data. Thread: any, one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cmd/common/report.h"
#include "trainer/config/choices.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// RunStage: how far the run is, as its tasks report.
enum class RunStage { kStarting, kRunning, kDone };

// RunResults: the result that children report to their parent. Every task reports it. All report the same at
// the end, so that the result is known even if ps 0 is killed before it reports. Owner: the Supervisor.
// Thread: the owner's.
class RunResults {
 public:
  // Takes a report: its task ("ps 0"), its word (report.h) and its text.
  void Take(const std::string& task, const std::string& word, const std::string& text);
  // The run begins when ps 0 says so. It is done when any task says so.
  RunStage Stage() const;
  // Returns the summary of a run that is done; otherwise the last one reported by ps 0, which has nothing but
  // the last step that it has told if it has reported none.
  const RunSummary& Summary() const { return done_ ? *done_ : first_; }
  // The run as ps 0 knew it when it began; empty before.
  const RunIdentity& Identity() const { return identity_; }

  // Takes a line of a task's log: of a warning it is kept.
  void TakeLine(const std::string& task, const std::string& line);
  // The warnings, each as task and text.
  const std::vector<std::pair<std::string, std::string>>& Warnings() const { return warnings_; }

 private:
  bool begun_ = false;
  RunIdentity identity_;
  std::vector<std::pair<std::string, std::string>> warnings_;
  RunSummary first_;  // reported by ps 0
  std::optional<RunSummary> done_;
};

// Whether tasks leave their closing lines to their parent, so that these are not repeated by every task in
// one log. Not with log.level debug.
bool ParentLogsEnd(const LogConfig& config);

// Returns the paths of all tasks' logs; none without log.dir.
std::vector<std::string> LogPaths(const Config& config);

// Logs the closing lines of a run that is done: one block in `log`, the parent's own log, and each task's
// lines in the task's log file. Tasks that ended before the run get none. Does nothing if the run is not
// done.
void LogClosingLines(const Config& config, const RunSummary& summary, Logger& log);

// ChildEnd: how one child ended.
struct ChildEnd {
  std::string name;  // "worker 1"
  int exit_code = 0;
  int signal = 0;            // the signal that killed it; 0: it exited
  bool ended_by_us = false;  // this process had told it to end
  bool lost_peer = false;    // its exit code says that it lost a peer
  bool given_up = false;     // killed by this process because other tasks had given it up
  bool may_be_lost = false;  // the run may have gone on without it
  bool run_went_on = false;  // the run had begun, so it went on without this child
  bool late = false;         // it ended when the run was done without it
  bool spoke = false;        // it has written lines
  std::string error;         // why it ended, in its own words; empty: it has not said
  std::string why_barred;    // why no process can replace it; empty: one can
};

// Restart: a child that was started again.
struct Restart {
  ChildEnd end;  // of the process before
  int64_t number = 0;
  int64_t max = 0;
  int64_t wall_nanos = 0;  // when
};

// Outcome: what became of all children.
struct Outcome {
  std::vector<ChildEnd> ends;     // one final end for each child, in the order of dying
  std::vector<Restart> restarts;  // in the order of starting
  int stop_signal = 0;            // the last SIGINT, SIGTERM or SIGHUP that the parent got
  bool ended_at_once = false;     // by a second signal
  RunResults results;
};

// Whether a new process may succeed: after a lost peer, and after any signal but one that asks a task to end.
// An error of the config or the data, a full disk and divergence would only repeat.
bool IsWorthRestart(const ChildEnd& end);

// Returns the exit code of a run that failed because of this child: the child's own, or that of a lost peer
// if a signal killed it.
ExitCode ExitCodeOf(const ChildEnd& end);

// Returns the index into `ends` (in the order of dying) of the failure that was the cause: of several the one
// that ps 0 names, as `dtrain status` does, otherwise the first; nothing if no child failed. A child that
// lost a peer is a victim if any other failed by itself. A child that the run went on without is the cause
// only if there is no other.
std::optional<size_t> FindCause(const std::vector<ChildEnd>& ends);

// "was killed by SIGKILL", "ended with exit code 2"
std::string EndText(const ChildEnd& end);
// Returns one line about a child that the run went on without.
std::string LossReport(const ChildEnd& end);
// The same at once, of one that is not started again. `restarts`: how often it was, failure.restarts.
std::string GoesOnReport(const ChildEnd& end, int64_t restarts);
// Returns one line about a child that was restarted: "ps 1 was killed by SIGKILL; started again (restart 1 of
// 3)".
std::string RestartReport(const Restart& restart);

// Returns why the run failed: the child that was the cause, and in one line how and why it ended. `logged`:
// its log was kept.
Blame BlameOf(const ChildEnd& cause, bool logged);

// Returns what precedes the last line of a run that failed, in lines: the restarts, what other tasks failed
// of by themselves, and the children that had to be killed.
std::string FailureReport(const ChildEnd& cause, const Outcome& outcome);

// Returns the last line: which child, how it ended, why, and what to do. `logged`: it has a log.
std::string EndLine(const ChildEnd& end, bool logged);

// Whether a line of a task with JSON log is a complete object. A truncated line, or one that is not from the
// log, is not.
bool IsJsonObject(const std::string& line);

// Returns the exit code of a run that a signal stopped, from the end of ps 0, which saves the run:
// kInterrupted or kTerminated if it was saved, kInternal if nothing was saved, kOk if the run was done
// before. `begun`: the workers had been told to start, so there was something to save.
ExitCode StopCode(const Outcome& outcome, bool begun);

// Ends a launching command after all its children have ended. Makes the children's result this command's
// result. Prints what the run achieved and went through (in `log`), or why it failed, and where its directory
// is. Returns the exit code. Throws IoError.
int FinishRun(const Config& config, const Outcome& outcome, Logger& log, const ErrorLines& errors,
              ResultFile& result);

}  // namespace dtrain
