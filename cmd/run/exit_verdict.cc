#include "cmd/run/exit_verdict.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/signals.h"
#include "cmd/common/load_config.h"
#include "cmd/common/run_directory.h"
#include "cmd/run/process_end.h"
#include "cmd/run/run_result.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/conversations.h"
#include "trainer/task/run_log.h"

namespace dtrain {
namespace {

bool IsDone(const RunSummary& summary) {
  return summary.status == "done" || summary.status == "already_done";
}

bool Has(const std::vector<int64_t>& indices, int index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

void WriteOwnEnd(const Config& config, TaskId task, const RunSummary& summary) {
  Console unused(LiveLine::kNone);
  LogOptions options = LogOptionsOf(config, unused);
  options.standard_error = false;
  options.show_host = false;  // the task may have run elsewhere
  Logger file(TaskName(task), options);
  LogEnd(config, task, summary, file);
}

// Whether the child says that another task has ended the run by what a new start would meet again.
bool EndedByFault(const ChildEnd& end) {
  const size_t at = end.error.find(kEndedRun);
  if (at == std::string::npos) return false;
  const auto code =
      static_cast<ExitCode>(std::strtol(end.error.c_str() + at + std::strlen(kEndedRun), nullptr, 10));
  return code == ExitCode::kUser || code == ExitCode::kDiverged;
}

bool Failed(const ChildEnd& end) { return !end.ended_by_us && (end.signal != 0 || end.exit_code != 0); }

// Returns "worker-1.log", the file name of the task's log.
std::string LogPath(const std::string& directory, std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("{}/{}.log", directory, name);
}

// Returns the text of a warning in a line of a task's log, of either format; empty for other lines.
std::string WarningIn(const std::string& line) {
  constexpr std::string_view kMark = " | warning: ";
  const size_t at = line.find(kMark);
  if (at != std::string::npos) return line.substr(at + kMark.size());
  if (line.find("warning") == std::string::npos || line.front() != '{') return std::string();
  const Json object = Json::Parse(line);
  return TextIn(object, "level") == "warning" ? TextIn(object, "text") : std::string();
}

// Returns ": " and the reason that the child itself gave, the meaning of a signal, or why it does not return.
std::string EndReason(const ChildEnd& end, bool logged) {
  if (!end.why_barred.empty()) return ", and cannot be started again: " + end.why_barred;
  if (end.given_up && !end.error.empty()) return ": " + end.error;
  if (end.given_up)
    return ": not heard for failure.detect_s. Was it stopped, or short of memory or processors?";
  if (end.signal == SIGKILL) return ". If nobody did that, memory ran out: see dmesg.";
  if (end.signal == 0 && !end.error.empty()) return ": " + end.error;
  if (end.spoke) return ". Look at its last lines above.";
  return logged ? ". Look at its log." : " without a word. Set log.dir and run again.";
}

// Whether the task has failed by itself, for another reason than `cause`.
bool HasOtherError(const ChildEnd& end, const ChildEnd& cause) {
  const bool is_victim = end.lost_peer && !cause.lost_peer;
  if (end.error.empty() || end.ended_by_us || is_victim || end.name == cause.name) return false;
  // Each worker of a run that diverges may see it.
  constexpr int kDiverged = static_cast<int>(ExitCode::kDiverged);
  if (end.exit_code == kDiverged && cause.exit_code == kDiverged) return false;
  return cause.error.empty() || end.error.find(cause.error) == std::string::npos;
}

// Returns the ends that decide the outcome. If the run is done, children that it went on without do not
// count.
std::vector<ChildEnd> RelevantEnds(const std::vector<ChildEnd>& ends, bool done) {
  std::vector<ChildEnd> counted;
  for (const ChildEnd& end : ends) {
    if (!done || !(end.may_be_lost || end.late)) counted.push_back(end);
  }
  return counted;
}

// Prints the losses and restarts of a run that is done, one per line.
void ReportLossesAndRestarts(const Outcome& outcome, const ErrorLines& errors) {
  for (const Restart& restart : outcome.restarts) {
    errors.Print("while it ran, " + RestartReport(restart), LogLevel::kWarning);
  }
  for (const ChildEnd& end : outcome.ends) {
    if (end.signal == 0 && end.exit_code == 0) continue;
    // A task that was started too late is no loss.
    if (end.late ? !end.ended_by_us : end.may_be_lost) errors.Print(LossReport(end), LogLevel::kWarning);
  }
}

// Returns what a run that a signal stopped has saved.
std::string StopReport(const Config& config, const Outcome& outcome, ExitCode code,
                       const RunSummary& summary) {
  const std::string signal = SignalName(outcome.stop_signal);
  const char* const lost = config.checkpoint.dir.empty() ? kNothingKept : kNothingSaved;
  if (outcome.ended_at_once) return fmt::format("ended at once by a second {}; {}", signal, lost);
  if (code == ExitCode::kInternal) {
    const auto leader = std::find_if(outcome.ends.begin(), outcome.ends.end(),
                                     [](const ChildEnd& end) { return end.name == "ps 0"; });
    const bool tells = leader != outcome.ends.end() && !leader->error.empty();
    return tells ? leader->error : fmt::format("stopped by {}; {}", signal, lost);
  }
  if (summary.checkpoint) {
    return fmt::format("stopped by {} at global step {}; the newest checkpoint is {}", signal,
                       summary.global_step, *summary.checkpoint);
  }
  const bool ps_lost =
      std::any_of(outcome.restarts.begin(), outcome.restarts.end(),
                  [](const Restart& restart) { return restart.end.name.rfind("ps", 0) == 0; });
  if (!ps_lost) return StoppedBeforeStep(outcome.stop_signal);
  return fmt::format(
      "stopped by {} before the run went on from its newest checkpoint; what is in {} stays as it is", signal,
      config.checkpoint.dir);
}

// Returns the newest of the run's checkpoints on this host; unset: none can be seen.
std::optional<ListedCheckpoint> NewestOf(const Config& config) {
  if (config.checkpoint.dir.empty()) return std::nullopt;
  try {
    const std::vector<ListedCheckpoint> found = CheckpointDirectory(config.checkpoint.dir).List();
    return found.empty() ? std::nullopt : std::optional(found[0]);
  } catch (const Failure&) {
    return std::nullopt;  // the cause of the end matters more
  }
}

// Returns what is lost with a ps that was killed, since it is in no checkpoint, and what to do; empty if
// nothing is.
std::string WhatIsLost(const Config& config, const ChildEnd& cause, RunStage stage, int64_t steps) {
  const bool ps = cause.name.rfind("ps", 0) == 0;
  const bool killed = cause.signal != 0 && stage == RunStage::kRunning;
  if (!ps || !killed) return "";
  if (!config.checkpoint.dir.empty()) {
    const std::optional<ListedCheckpoint> newest = NewestOf(config);
    if (newest && steps > newest->step) return " " + LostStepsText(config, steps, newest->step);
    if (!newest || config.failure.replicas == 0) return "";
    return fmt::format(" Nothing is lost: {}/{} has all steps, {} in all. Start the run again.",
                       config.checkpoint.dir, newest->name, newest->step);
  }
  const char* const not_again = " It was not started again, since its parameters are in no checkpoint.";
  const bool never = config.failure.restarts > 0 && config.failure.replicas == 0;
  return fmt::format("{} {}", never ? not_again : "", LostStepsText(config, steps, std::nullopt));
}

// Returns the name of the task that ps 0 says has ended the run, as in its last status; empty: it says none.
std::string NamedByLeader(const std::vector<ChildEnd>& ends) {
  constexpr TaskId kLeader{Role::kPs, 0};
  for (const ChildEnd& end : ends) {
    if (end.name != TaskName(kLeader) || end.error.empty()) continue;
    return TaskName(BlameFor(kLeader, "", end.error).task.value_or(kLeader));
  }
  return "";
}

bool IsLostWorker(const ChildEnd& end) {
  return !end.ended_by_us && end.signal != 0 && end.name.rfind("worker", 0) == 0;
}

// Returns which other workers the run had lost when it failed because of one that it could do without; empty
// if the cause is another.
std::string OthersLost(const ChildEnd& cause, const std::vector<ChildEnd>& ends) {
  if (!cause.run_went_on || !IsLostWorker(cause)) return "";
  std::string others;
  for (const ChildEnd& end : ends) {
    if (end.name == cause.name || !IsLostWorker(end)) continue;
    others += fmt::format("{}{} {}", others.empty() ? "" : ", ", end.name, EndText(end));
  }
  return others.empty() ? "" : fmt::format(" After it, {}; no worker was left.", others);
}

// Fills in what is known of a run that has failed if ps 0 could not tell: which workers were lost, and the
// newest checkpoint if that is on this host.
void FillIn(const Config& config, const Outcome& outcome, RunSummary* summary) {
  if (outcome.results.Stage() != RunStage::kRunning) return;
  for (const ChildEnd& end : outcome.ends) {
    const std::optional<TaskId> task = TaskNamed(end.name);
    if (task && IsLostWorker(end) && !Has(summary->lost_workers, task->index)) {
      summary->lost_workers.push_back(task->index);
    }
  }
  std::sort(summary->lost_workers.begin(), summary->lost_workers.end());
  const auto& hosts = outcome.results.Identity().hosts;
  const auto leader = hosts.find(TaskName({Role::kPs, 0}));
  const bool here = leader != hosts.end() && leader->second == HostName();
  if (summary->checkpoint || !here) return;
  if (const std::optional<ListedCheckpoint> newest = NewestOf(config)) {
    summary->checkpoint = config.checkpoint.dir + "/" + newest->name;
    summary->global_step = std::max(summary->global_step, newest->step);
  }
}

// Verdict: what became of the run, and what to print about it.
struct Verdict {
  ExitCode code = ExitCode::kOk;
  Blame blame;
  std::string before;  // warnings for standard error, in lines; may be empty
  std::string logs;    // where they are; may be empty
  std::string last;    // the last line; empty: there is nothing to say
};

Verdict Judge(const Config& config, const Outcome& outcome, const RunSummary& summary) {
  const RunStage stage = outcome.results.Stage();
  const bool done = stage == RunStage::kDone;
  const std::vector<ChildEnd> ends = RelevantEnds(outcome.ends, done);
  const std::optional<size_t> cause = FindCause(ends);
  // A failure before the signal has precedence, unless the run had gone on.
  if (outcome.stop_signal != 0 && !done && (!cause || ends[*cause].run_went_on)) {
    const ExitCode code = StopCode(outcome, stage != RunStage::kStarting);
    Verdict verdict{code, {}, "", "", StopReport(config, outcome, code, summary)};
    if (code == ExitCode::kInternal) verdict.blame = {std::nullopt, HostName(), verdict.last};
    return verdict;
  }
  if (cause) {
    const ChildEnd& end = ends[*cause];
    const bool logged = !config.log.dir.empty();
    const std::string logs =
        logged ? fmt::format("logs: {}, and those of the others beside it", LogPath(config.log.dir, end.name))
               : "";
    Blame blame = BlameOf(end, logged);
    const std::string others = OthersLost(end, ends);
    blame.error += others;
    return {ExitCodeOf(end), std::move(blame), FailureReport(end, outcome), logs,
            EndLine(end, logged) + others + WhatIsLost(config, end, stage, summary.global_step)};
  }
  const bool stuck = std::any_of(ends.begin(), ends.end(), [](const ChildEnd& end) {
    return end.ended_by_us && (end.signal != 0 || end.exit_code != 0);
  });
  // One that was started again when some had ended waits for those in vain, and the others wait with it.
  if (!stuck || (done && !outcome.restarts.empty())) return {};
  const std::string text = "the run was over, but some tasks did not end and were killed";
  return {ExitCode::kInternal, {std::nullopt, "", text}, "", "", text};
}

// Fills in what this process has seen of the run.
void NoteOutcome(const Outcome& outcome, RunAccount* account) {
  account->Learn(outcome.results.Identity());
  for (const auto& [task, text] : outcome.results.Warnings()) account->AddWarning(task, text);
  for (const Restart& restart : outcome.restarts) {
    if (account->restarts.size() == RunAccount::kMaxRestarts) break;
    account->restarts.push_back({restart.end.name, restart.wall_nanos, EndText(restart.end)});
  }
}

}  // namespace

void RunResults::Take(const std::string& task, const std::string& word, const std::string& text) {
  const bool first = task == "ps 0";
  RunSummary summary;
  if (word == kStepWord && first) first_.global_step = std::strtoll(text.c_str(), nullptr, 10);
  if (word == kResultWord) {
    FromWireJson(text, &summary);  // stays empty if the text was cut off
  } else if (word == kBegunWord && first) {
    IdentityFromJson(text, &identity_);
  } else if (word != kBegunWord) {
    return;
  }
  if (IsDone(summary) && (first || !done_)) done_ = summary;
  if (!first) return;
  begun_ = true;
  first_ = summary;
}

void RunResults::TakeLine(const std::string& task, const std::string& line) {
  if (warnings_.size() >= RunAccount::kMaxWarnings) return;
  std::string text = WarningIn(line);
  text = text.substr(0, text.find('\n'));
  if (text.empty()) return;
  const auto warning = std::pair(task, std::move(text));
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) warnings_.push_back(warning);
}

RunStage RunResults::Stage() const {
  if (done_) return RunStage::kDone;
  return begun_ ? RunStage::kRunning : RunStage::kStarting;
}

bool ParentLogsEnd(const LogConfig& config) { return config.level > static_cast<int>(LogLevel::kDebug); }

std::vector<std::string> LogPaths(const Config& config) {
  std::vector<std::string> paths;
  if (config.log.dir.empty()) return paths;
  for (const TaskId task : TasksOf(config.cluster)) paths.push_back(LogPath(config.log.dir, TaskName(task)));
  return paths;
}

void LogClosingLines(const Config& config, const RunSummary& summary, Logger& log) {
  if (!IsDone(summary)) return;
  LogRunEnd(config, summary, log);
  if (config.log.dir.empty() || !ParentLogsEnd(config.log)) return;
  for (const TaskId task : TasksOf(config.cluster)) {
    const bool worker = task.role == Role::kWorker;
    if (worker && (Has(summary.lost_workers, task.index) || Has(summary.absent_workers, task.index)))
      continue;
    try {
      WriteOwnEnd(config, task, summary);
    } catch (const Failure& failure) {
      log.Warning("{}", failure.what());  // the run itself is no failure because of this
    }
  }
}

bool IsJsonObject(const std::string& line) { return line.front() == '{' && Json::Parse(line).is_object(); }

bool IsWorthRestart(const ChildEnd& end) {
  return (end.lost_peer && !EndedByFault(end)) || (end.signal != 0 && !AsksToStop(end.signal));
}

ExitCode ExitCodeOf(const ChildEnd& end) {
  if (end.signal != 0 || end.lost_peer) return ExitCode::kPeerLost;
  return static_cast<ExitCode>(end.exit_code);
}

std::optional<size_t> FindCause(const std::vector<ChildEnd>& ends) {
  const std::string named = NamedByLeader(ends);
  std::optional<size_t> failed, run_went_on, victim;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (!Failed(ends[i])) continue;
    const bool by_itself = ends[i].signal != 0 || !ends[i].lost_peer;
    std::optional<size_t>& first = !by_itself ? victim : ends[i].run_went_on ? run_went_on : failed;
    // A victim that has the words of another one has them from there.
    const bool source = first && !by_itself && !ends[i].error.empty() &&
                        ends[i].error != ends[*first].error &&
                        ends[*first].error.find(ends[i].error) != std::string::npos;
    const bool ended_run = by_itself && ends[i].signal == 0 && ends[i].name == named;
    if (!first || source || ended_run) first = i;
  }
  return failed ? failed : run_went_on ? run_went_on : victim;
}

std::string EndText(const ChildEnd& end) {
  if (end.given_up) return "was given up by the others and killed";
  if (end.signal != 0) return fmt::format("was killed by {}", SignalName(end.signal));
  return fmt::format("ended with exit code {}", end.exit_code);
}

std::string LossReport(const ChildEnd& end) {
  return fmt::format("{} {}; {}", end.name, end.ended_by_us ? "did not end and was killed" : EndText(end),
                     end.late ? "the run was done by then" : "the run went on without it");
}

std::string GoesOnReport(const ChildEnd& end, int64_t restarts) {
  const std::string none_left =
      restarts > 0 ? fmt::format("no restart is left (failure.restarts: {}), and ", restarts) : "";
  return fmt::format("{} {}; {}the run goes on without it", end.name, EndText(end), none_left);
}

std::string RestartReport(const Restart& restart) {
  return fmt::format("{} {}; started again (restart {} of {})", restart.end.name, EndText(restart.end),
                     restart.number, restart.max);
}

ExitCode StopCode(const Outcome& outcome, bool begun) {
  const auto first = std::find_if(outcome.ends.begin(), outcome.ends.end(),
                                  [](const ChildEnd& end) { return end.name == "ps 0"; });
  if (first == outcome.ends.end()) return ExitCode::kInternal;
  // The task had no handler yet.
  if (!begun && !outcome.ended_at_once && AsksToStop(first->signal)) {
    return StopExitCode(outcome.stop_signal);
  }
  if (first->signal != 0 || first->lost_peer) return ExitCode::kInternal;
  const ExitCode code = static_cast<ExitCode>(first->exit_code);
  const bool kept = code == ExitCode::kOk || code == ExitCode::kInterrupted || code == ExitCode::kTerminated;
  return kept && !outcome.ended_at_once ? code : ExitCode::kInternal;
}

Blame BlameOf(const ChildEnd& cause, bool logged) {
  std::optional<TaskId> task = TaskNamed(cause.name);
  const std::string reason = EndReason(cause, logged);
  if (task && reason.compare(0, 2, ": ") == 0) return BlameFor(*task, "", reason.substr(2));
  return {task, "", EndLine(cause, logged)};
}

std::string EndLine(const ChildEnd& end, bool logged) {
  // Why others have given it up begins with its name.
  if (end.given_up && !end.error.empty() && end.why_barred.empty())
    return end.error + "; the others gave it up, and it was killed";
  return fmt::format("{} {}{}", end.name, EndText(end), EndReason(end, logged));
}

std::string FailureReport(const ChildEnd& cause, const Outcome& outcome) {
  std::string report;
  for (const Restart& restart : outcome.restarts) report += RestartReport(restart) + "\n";
  for (const ChildEnd& end : outcome.ends) {
    if (HasOtherError(end, cause)) report += EndLine(end, /*logged=*/true) + "\n";
    if (end.ended_by_us && end.signal == SIGKILL)
      report += fmt::format("{} did not end and was killed\n", end.name);
  }
  return report;
}

int FinishRun(const Config& config, const Outcome& outcome, Logger& log, const ErrorLines& errors,
              ResultFile& result) {
  RunSummary summary = outcome.results.Summary();
  summary.wall_s = SecondsSinceStart();
  if (summary.first_step_nanos != 0) {
    summary.startup_s = static_cast<double>(summary.first_step_nanos - ProcessStartWallNanos()) * 1e-9;
  }
  result.Note([&](RunAccount& account) { NoteOutcome(outcome, &account); });
  LogClosingLines(config, summary, log);
  if (outcome.results.Stage() == RunStage::kDone) {
    ShowTable(config, summary, std::nullopt, errors);
    ReportLossesAndRestarts(outcome, errors);
  }
  const Verdict verdict = Judge(config, outcome, summary);
  const int exit_code = ProcessExitCode(verdict.code, config.failure);
  if (verdict.code == ExitCode::kOk) {
    const bool is_shown = ShowResult(config, summary, errors, result);
    const bool is_kept = result.Write(summary);
    result.TellDirectory();
    return is_shown && is_kept ? exit_code : static_cast<int>(ExitCode::kInternal);
  }
  FillIn(config, outcome, &summary);
  const bool stopped = outcome.stop_signal != 0 && verdict.code == ExitCode::kInternal;
  result.WriteEnding({stopped ? "stopped" : StatusOf(verdict.code), exit_code, verdict.blame}, summary);
  errors.Print(verdict.before, LogLevel::kWarning);
  errors.Print(verdict.logs, LogLevel::kInfo);
  errors.Print(verdict.last, LevelOf(verdict.code), kEventRunEnded);
  result.TellDirectory();
  return exit_code;
}

}  // namespace dtrain
