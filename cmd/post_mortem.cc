#include "cmd/post_mortem.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/signals.h"
#include "cmd/signal_pipe.h"

namespace dtrain {
namespace {

bool Failed(const ChildEnd& end) { return !end.ended_by_us && (end.signal != 0 || end.exit_code != 0); }

std::string HowItEnded(const ChildEnd& end) {
  if (end.given_up) return "was given up by the others and killed";
  if (end.signal != 0) return fmt::format("was killed by {}", SignalName(end.signal));
  return fmt::format("ended with exit code {}", end.exit_code);
}

// "worker-1.log": as the log names it.
std::string LogPath(const std::string& directory, std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("{}/{}.log", directory, name);
}

std::string LogsText(const std::vector<ChildEnd>& ends, const std::string& directory) {
  if (directory.empty()) return "no logs were kept. Set log.dir to keep one for each task.";
  std::string text = "logs:";
  for (const ChildEnd& end : ends) text += " " + LogPath(directory, end.name);
  return text;
}

// The text of an error in a task's log, in either format; empty for other lines.
std::string ErrorOf(const std::string& line) {
  constexpr std::string_view kMark = " | error: ";
  const size_t mark = line.find(kMark);
  if (mark != std::string::npos) return line.substr(mark + kMark.size());
  constexpr std::string_view kCommand = "dtrain: ";  // of a task that has not got as far as its log
  if (line.rfind(kCommand, 0) == 0) return line.substr(kCommand.size());
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto text_of = [&](const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_string()
               ? object[key].get<std::string>()
               : std::string();
  };
  return text_of("level") == "error" ? text_of("text") : std::string();
}

// ": the reason that the child itself gave last", or what a signal means.
std::string WhyItEnded(const ChildEnd& end, bool logged) {
  if (end.given_up)
    return ": not heard for failure.detect_s. Was it stopped, or short of memory or processors?";
  if (end.signal == SIGKILL) return ". If nobody did that, memory ran out: see dmesg.";
  for (auto line = end.last_lines.rbegin(); end.signal == 0 && line != end.last_lines.rend(); ++line) {
    const std::string error = ErrorOf(*line);
    if (!error.empty()) return ": " + error.substr(0, error.find('\n'));
  }
  if (!end.last_lines.empty()) return ". Look at its last lines above.";
  return logged ? ". Look at its log." : " without a word. Set log.dir and run again.";
}

}  // namespace

bool IsWorthRestart(const ChildEnd& end) {
  return end.lost_peer || (end.signal != 0 && !AsksToStop(end.signal));
}

ExitCode ExitCodeOf(const ChildEnd& end) {
  if (end.signal != 0 || end.lost_peer) return ExitCode::kPeerLost;
  return static_cast<ExitCode>(end.exit_code);
}

std::optional<size_t> FindCause(const std::vector<ChildEnd>& ends) {
  std::optional<size_t> tolerated, victim;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (!Failed(ends[i])) continue;
    const bool by_itself = ends[i].signal != 0 || !ends[i].lost_peer;
    if (by_itself && !ends[i].tolerated) return i;
    std::optional<size_t>& first = by_itself ? tolerated : victim;
    if (!first) first = i;
  }
  return tolerated ? tolerated : victim;
}

std::string LossReport(const ChildEnd& end) {
  return fmt::format("{} {}; {}", end.name, end.ended_by_us ? "did not end and was killed" : HowItEnded(end),
                     end.late ? "the run was done by then" : "the run went on without it");
}

std::string RestartReport(const Restart& restart) {
  return fmt::format("{} {}; started again (restart {} of {})", restart.end.name, HowItEnded(restart.end),
                     restart.number, restart.most);
}

ExitCode StopCode(const Outcome& outcome, bool begun) {
  const auto first = std::find_if(outcome.ends.begin(), outcome.ends.end(),
                                  [](const ChildEnd& end) { return end.name == "ps 0"; });
  if (first == outcome.ends.end()) return ExitCode::kInternal;
  // It had no handler yet.
  if (!begun && !outcome.ended_at_once && AsksToStop(first->signal)) {
    return StopExitCode(outcome.stop_signal);
  }
  if (first->signal != 0 || first->lost_peer) return ExitCode::kInternal;
  const ExitCode code = static_cast<ExitCode>(first->exit_code);
  const bool kept = code == ExitCode::kOk || code == ExitCode::kInterrupted || code == ExitCode::kTerminated;
  return kept && !outcome.ended_at_once ? code : ExitCode::kInternal;
}

std::string FailureReport(const ChildEnd& cause, const Outcome& outcome, const std::string& log_directory,
                          const std::string& advice) {
  std::string report;
  if (cause.last_lines.empty()) {
    report = fmt::format("{} had said nothing\n", cause.name);
  } else {
    const size_t lines = cause.last_lines.size();
    report = lines == 1 ? fmt::format("the last line of {}:\n", cause.name)
                        : fmt::format("the last {} lines of {}:\n", lines, cause.name);
    for (const std::string& line : cause.last_lines) report += "    " + line;
  }
  for (const Restart& restart : outcome.restarts) report += RestartReport(restart) + "\n";
  for (const ChildEnd& end : outcome.ends) {
    if (end.ended_by_us && end.signal == SIGKILL)
      report += fmt::format("{} did not end and was killed\n", end.name);
  }
  return report + LogsText(outcome.ends, log_directory) + "\n" +
         fmt::format("{} {}{}{}\n", cause.name, HowItEnded(cause), WhyItEnded(cause, !log_directory.empty()),
                     advice);
}

}  // namespace dtrain
