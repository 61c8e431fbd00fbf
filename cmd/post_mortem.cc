#include "cmd/post_mortem.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "cmd/signal_pipe.h"

namespace dtrain {
namespace {

constexpr int kPeerLost = static_cast<int>(ExitCode::kPeerLost);

bool Failed(const ChildEnd& end) { return !end.ended_by_us && (end.signal != 0 || end.exit_code != 0); }

std::string HowItEnded(const ChildEnd& end) {
  if (end.signal != 0) return fmt::format("was killed by {}", SignalName(end.signal));
  return fmt::format("ended with exit code {}", end.exit_code);
}

// "worker-1.log": as the log names it.
std::string LogPath(const std::string& directory, std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("{}/{}.log", directory, name);
}

}  // namespace

int ExitCodeOf(const ChildEnd& end) { return end.signal != 0 ? kPeerLost : end.exit_code; }

std::optional<size_t> FindCause(const std::vector<ChildEnd>& ends) {
  std::optional<size_t> victim;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (!Failed(ends[i])) continue;
    if (ends[i].signal != 0 || ends[i].exit_code != kPeerLost) return i;
    if (!victim) victim = i;
  }
  return victim;
}

std::string FailureReport(const ChildEnd& cause, const std::vector<ChildEnd>& ends,
                          const std::string& log_directory) {
  std::string report = fmt::format("dtrain: {} {}", cause.name, HowItEnded(cause));
  for (const ChildEnd& end : ends) {
    if (end.ended_by_us && end.signal == SIGKILL)
      report += fmt::format("; {} did not end and was killed", end.name);
  }
  if (cause.last_lines.empty()) {
    report += "; it had said nothing.\n";
  } else {
    const size_t lines = cause.last_lines.size();
    report += lines == 1 ? "; its last line:\n" : fmt::format("; its last {} lines:\n", lines);
    for (const std::string& line : cause.last_lines) report += "    " + line;
  }
  if (log_directory.empty()) {
    report += "dtrain: no logs were kept. Set log.dir to keep one for each task.\n";
    return report;
  }
  report += "dtrain: logs:";
  for (const ChildEnd& end : ends) report += " " + LogPath(log_directory, end.name);
  return report + "\n";
}

}  // namespace dtrain
