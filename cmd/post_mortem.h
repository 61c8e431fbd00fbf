// Which of several dead tasks was the cause, and what to tell the user about it. Plain functions on plain
// data; local and other launchers share them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrain {

// How one child ended.
struct ChildEnd {
  std::string name;  // "worker 1"
  int exit_code = 0;
  int signal = 0;                       // that killed it; 0: it ended by itself
  bool ended_by_us = false;             // we had asked it to end
  bool expendable = false;              // the run may have gone on without it
  bool tolerated = false;               // and when it died it did, whatever came later
  std::vector<std::string> last_lines;  // each with its newline
};

// The exit code of a run that this child has ended: its own; a task that a signal killed is a lost peer (4).
int ExitCodeOf(const ChildEnd& end);

// Index into `ends` (in the order of dying) of the first causal failure. A child that ended because a peer
// was lost (exit 4) is a victim as long as another has failed in its own right; one that the run had gone on
// without is blamed only where no other has. Unset: nobody failed.
std::optional<size_t> FindCause(const std::vector<ChildEnd>& ends);

// One line about a child that the run went on without.
std::string LossReport(const ChildEnd& end);

// The last lines on standard error: what the cause said last, where the logs are, and in the very last line
// who, how, why and what to do. `log_directory` empty: there are no logs.
std::string FailureReport(const ChildEnd& cause, const std::vector<ChildEnd>& ends,
                          const std::string& log_directory);

}  // namespace dtrain
