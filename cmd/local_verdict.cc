#include "cmd/local_verdict.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/signals.h"
#include "cmd/end_on_signal.h"
#include "cmd/end_while_loading.h"
#include "cmd/load_config.h"
#include "cmd/run_end.h"

namespace dtrain {
namespace {

// The ends that decide how the run ended. Of a run that is done, those are not that it went on without.
std::vector<ChildEnd> EndsThatCount(const std::vector<ChildEnd>& ends, bool done) {
  std::vector<ChildEnd> counted;
  for (const ChildEnd& end : ends) {
    if (!done || !(end.expendable || end.late)) counted.push_back(end);
  }
  return counted;
}

// What a run that is done went through, a line each.
void TellDisturbances(const Outcome& outcome, const ErrorLines& errors) {
  for (const Restart& restart : outcome.restarts) errors.Print("while it ran, " + RestartReport(restart));
  for (const ChildEnd& end : outcome.ends) {
    if (end.signal == 0 && end.exit_code == 0) continue;
    // One that had come too late is no loss.
    if (end.late ? !end.ended_by_us : end.expendable) errors.Print(LossReport(end));
  }
}

// What a run that a signal has stopped has saved.
std::string StopReport(const Config& config, const Outcome& outcome, ExitCode code,
                       const RunSummary& summary) {
  const std::string signal = SignalName(outcome.stop_signal);
  const char* const lost = config.checkpoint.dir.empty() ? kNothingKept : kNothingSaved;
  if (outcome.ended_at_once) return fmt::format("ended at once by a second {}; {}", signal, lost);
  if (code == ExitCode::kInternal) return fmt::format("stopped by {}; {}", signal, lost);
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

// Why a ps that was killed did not come back although restarts are left; empty: that is not so.
std::string NotStartedAgain(const Config& config, const ChildEnd& cause, RunStage stage) {
  const bool ps = cause.name.rfind("ps", 0) == 0;
  const bool could = config.failure.restarts > 0 && cause.signal != 0 && stage == RunStage::kRunning;
  if (!ps || !could || !config.checkpoint.dir.empty()) return "";
  return " It was not started again, since its parameters are in no checkpoint. Set checkpoint.dir.";
}

// How the run ended; says on standard error why not well.
ExitCode Judge(const Config& config, const Outcome& outcome, RunStage stage, const RunSummary& summary,
               const ErrorLines& errors) {
  const bool done = stage == RunStage::kDone;
  if (done) TellDisturbances(outcome, errors);
  const std::vector<ChildEnd> ends = EndsThatCount(outcome.ends, done);
  const std::optional<size_t> cause = FindCause(ends);
  // A failure before the signal counts more, unless the run had gone on.
  if (outcome.stop_signal != 0 && !done && (!cause || ends[*cause].tolerated)) {
    const ExitCode code = StopCode(outcome, stage != RunStage::kStarting);
    errors.Print(StopReport(config, outcome, code, summary));
    return code;
  }
  if (cause) {
    const std::string why_gone = NotStartedAgain(config, ends[*cause], stage);
    errors.Print(FailureReport(ends[*cause], outcome, config.log.dir, why_gone));
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

int Conclude(const Config& config, const Outcome& outcome, const RunResults& results, Logger& log,
             const ErrorLines& errors, ResultFile& result) {
  RunSummary summary = results.Read();
  summary.wall_s = SecondsSinceStart();
  if (summary.first_step_nanos != 0) {
    summary.startup_s = static_cast<double>(summary.first_step_nanos - ProcessStartWallNanos()) * 1e-9;
  }
  TellRunEnd(config, summary, log);
  const ExitCode code = Judge(config, outcome, results.Stage(), summary, errors);
  const bool stopped = outcome.stop_signal != 0 && code == ExitCode::kInternal;
  if (code == ExitCode::kOk) {
    result.Write(summary);
  } else {
    summary.status = stopped ? "stopped" : StatusOf(code);
    result.WriteEnding(summary);
  }
  return ProcessExitCode(code, config.failure);
}

}  // namespace dtrain
