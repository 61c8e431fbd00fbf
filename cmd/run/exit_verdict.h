// How a run of children ended: the result that they report (RunResults), which of several dead tasks was the
// cause, what the user is told about it on standard error, and the exit code of dtrain local and dtrain
// launch. Plain functions on plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cmd/common/report.h"
#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// How far a run has come, as its tasks report.
enum class RunStage { kStarting, kRunning, kDone };

// RunResults: the result that children report to their parent. Every task reports it: all have the same at
// the end, and ps 0 may be killed when only another has it. Owner: the Supervisor. Thread: its owner's.
class RunResults {
 public:
  // `task`: "ps 0"; word and text of its report (report.h).
  void Take(const std::string& task, const std::string& word, const std::string& text);
  // The run begins when ps 0 says so first. It is done when anybody says so.
  RunStage Stage() const;
  // The summary of a run that is done; otherwise what ps 0 has reported last, which is an empty summary when
  // it has not got that far.
  const RunSummary& Summary() const { return done_ ? *done_ : first_; }

 private:
  bool begun_ = false;
  RunSummary first_;  // that of ps 0
  std::optional<RunSummary> done_;
};

// Whether tasks leave their closing lines to their parent: in the log of all they would say one thing many
// times. With log.level debug they do not.
bool ParentLogsEnd(const LogConfig& config);

// Logs the closing lines of a run that is done: one block in `log`, the parent's own, and each task's lines
// in its file. A task that was not there to the end gets none; a run that is not done gets none at all.
void LogClosingLines(const Config& config, const RunSummary& summary, Logger& log);

// How one child ended.
struct ChildEnd {
  std::string name;  // "worker 1"
  int exit_code = 0;
  int signal = 0;                       // that killed it; 0: it ended by itself
  bool ended_by_us = false;             // this process had asked it to end
  bool lost_peer = false;               // its exit code says that it had lost a peer
  bool given_up = false;                // we killed it, because the other tasks had given it up
  bool may_be_lost = false;             // the run may have gone on without it
  bool run_went_on = false;             // it had begun without it, whatever came later
  bool late = false;                    // it ended when the run was done without it
  std::vector<std::string> last_lines;  // each with its newline
};

// A child that was started again.
struct Restart {
  ChildEnd end;  // the process before
  int64_t number = 0;
  int64_t max = 0;
};

// What became of all children.
struct Outcome {
  std::vector<ChildEnd> ends;     // for good, one for each child, in the order of dying
  std::vector<Restart> restarts;  // in their order
  int stop_signal = 0;            // the last SIGINT, SIGTERM or SIGHUP that the parent got
  bool ended_at_once = false;     // it was the second one
  RunResults results;
};

// Whether a new process may fare better: after a signal, unless it only asks a task to end, and after a lost
// peer. An error of the config or the data, a full disk and a divergence come again.
bool IsWorthRestart(const ChildEnd& end);

// The exit code of a run that this child has ended: its own; a task that a signal killed is a lost peer.
ExitCode ExitCodeOf(const ChildEnd& end);

// Index into `ends` (in the order of dying) of the first causal failure. A child that ended because a peer
// was lost is a victim as long as another has failed in its own right; one that the run had gone on
// without is blamed only where no other has. Unset: nobody failed.
std::optional<size_t> FindCause(const std::vector<ChildEnd>& ends);

// One line about a child that the run went on without.
std::string LossReport(const ChildEnd& end);
// One line about a child that came back: "ps 1 was killed by SIGKILL; started again (restart 1 of 3)".
std::string RestartReport(const Restart& restart);

// The last lines on standard error: what the cause said last, who had been started again, where the logs are,
// and in the very last line who, how, why and what to do. `log_directory` empty: there are no logs. `advice`
// ends that line.
std::string FailureReport(const ChildEnd& cause, const Outcome& outcome, const std::string& log_directory,
                          const std::string& advice = "");

// Whether a line of a task that logs JSON is a whole object: one that was cut off, or is not from the log, is
// none.
bool IsJsonObject(const std::string& line);

// How a run ended that a signal stopped, by the end of ps 0, which has it saved: kInterrupted or kTerminated
// when it is, kInternal when nothing is, kOk when the run was done before. `begun`: the workers
// had been told to start, so that there was something to be saved.
ExitCode StopCode(const Outcome& outcome, bool begun);

// The last step of a launching command, once all children have ended. Returns its exit code, and makes what
// the children have reported this command's result. On standard error it says what a run that is done has
// come to (in `log`) and went through, or why the code is not 0. Throws IoError.
int FinishRun(const Config& config, const Outcome& outcome, Logger& log, const ErrorLines& errors,
              ResultFile& result);

}  // namespace dtrain
