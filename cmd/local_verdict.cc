#include "cmd/local_verdict.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/signal_name.h"
#include "cmd/end_on_signal.h"
#include "cmd/load_config.h"

namespace dtrain {
namespace {

// The ends that decide how the run ended. Of a run that is done, those are not that it went on without.
std::vector<ChildEnd> EndsThatCount(const std::vector<ChildEnd>& ends, bool done) {
  std::vector<ChildEnd> counted;
  for (const ChildEnd& end : ends) {
    if (!done || !end.expendable) counted.push_back(end);
  }
  return counted;
}

// What a run that is done went through, a line each.
void TellDisturbances(const Outcome& outcome, const ErrorLines& errors) {
  for (const Restart& restart : outcome.restarts) errors.Print(RestartReport(restart));
  for (const ChildEnd& end : outcome.ends) {
    if (end.expendable && (end.signal != 0 || end.exit_code != 0)) errors.Print(LossReport(end));
  }
}

// Of a run that a signal has stopped.
ExitCode JudgeStop(const Outcome& outcome, const ErrorLines& errors) {
  const ExitCode code = StopCode(outcome);
  const std::string signal = SignalName(outcome.stop_signal);
  if (outcome.ended_at_once) {
    errors.Print(fmt::format("ended at once by a second {}; {}", signal, kNothingSaved));
  } else if (code == ExitCode::kInternal) {
    errors.Print(fmt::format("stopped by {}; {}", signal, kNothingSaved));
  } else {
    errors.Print(fmt::format("stopped by {}; all was saved", signal));
  }
  return code;
}

// How the run ended; says on standard error why not well.
ExitCode Judge(const Outcome& outcome, bool done, const std::string& log_directory,
               const ErrorLines& errors) {
  if (done) TellDisturbances(outcome, errors);
  const std::vector<ChildEnd> ends = EndsThatCount(outcome.ends, done);
  const std::optional<size_t> cause = FindCause(ends);
  // A failure before the signal counts more, unless the run had gone on.
  if (outcome.stop_signal != 0 && !done && (!cause || ends[*cause].tolerated)) {
    return JudgeStop(outcome, errors);
  }
  if (cause) {
    errors.Print(FailureReport(ends[*cause], outcome, log_directory));
    return ExitCodeOf(ends[*cause]);
  }
  const bool stuck = std::any_of(ends.begin(), ends.end(), [](const ChildEnd& end) {
    return end.ended_by_us && (end.signal != 0 || end.exit_code != 0);
  });
  if (!stuck) return ExitCode::kOk;
  errors.Print("the run was over, but some tasks did not end and were killed");
  return ExitCode::kInternal;
}

}  // namespace

int Conclude(const Config& config, const Outcome& outcome, RunSummary summary, const ErrorLines& errors,
             ResultFile& result) {
  const bool done = summary.status == "done" || summary.status == "already_done";
  const ExitCode code = Judge(outcome, done, config.log.dir, errors);
  const bool stopped = outcome.stop_signal != 0 && code == ExitCode::kInternal;
  if (code != ExitCode::kOk) summary.status = stopped ? "stopped" : StatusOf(code);
  summary.wall_s = SecondsSinceStart();
  if (summary.first_step_nanos != 0) {
    summary.startup_s = static_cast<double>(summary.first_step_nanos - ProcessStartWallNanos()) * 1e-9;
  }
  result.Write(summary);
  return ProcessExitCode(code, config.failure);
}

}  // namespace dtrain
