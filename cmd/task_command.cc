#include "cmd/task_command.h"

#include <signal.h>

#include "base/clock.h"
#include "cmd/end_on_signal.h"
#include "cmd/exit_deadline.h"
#include "cmd/load_config.h"
#include "cmd/lost_pipe.h"
#include "cmd/result_file.h"
#include "cmd/scheduled_task.h"
#include "cmd/signal_pipe.h"
#include "trainer/task/network_transport.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// Everything ends within 5 s of the run's end; this is for tearing down alone.
constexpr milliseconds kTearDown{3000};
// How long a task may go on with what it is doing when the run has failed or was stopped: loading, a step.
constexpr milliseconds kBusy{4000};

// "Use --index 0.", "Use --index 0, 1 or 2.", "Use --index 0 to 7."
std::string IndexRemedy(int count) {
  if (count == 1) return "Use --index 0.";
  if (count == 2) return "Use --index 0 or 1.";
  if (count == 3) return "Use --index 0, 1 or 2.";
  return fmt::format("Use --index 0 to {}.", count - 1);
}

void CheckIndex(const ClusterConfig& cluster, TaskId task) {
  const bool is_ps = task.role == Role::kPs;
  const int count = static_cast<int>(is_ps ? cluster.ps.size() : cluster.worker.size());
  if (task.index < count) return;
  const std::string role = is_ps ? "ps" : "worker";
  const std::string has = count == 1 ? fmt::format("only {} 0", role)
                                     : fmt::format("{} 0 to {}", is_ps ? "ps" : "workers", count - 1);
  throw UserError("{}: the spec has {} (cluster.{}). {}", TaskName(task), has, role, IndexRemedy(count));
}

// Whether SIGTERM and SIGHUP take this task alone out of the run.
bool Leaves(const FailureConfig& failure, TaskId task) {
  return failure.on_sigterm == OnSigterm::kLeave && task.role == Role::kWorker && task.index != 0;
}

// The run itself. A failure goes to the log, which carries role and index.
int RunLogged(const TaskArguments& arguments, const Config& config, NewRuntime new_runtime,
              const StopRequest& stop, ExitHooks& hooks, Logger& log, ResultFile& result) {
  ExitDeadline exit_deadline, busy_deadline;
  const bool computes = arguments.task->role == Role::kWorker;
  const std::unique_ptr<gpu::cuda::Runtime> runtime = computes ? new_runtime() : nullptr;
  const auto transport = NewNetworkTransport(config.net);
  TaskOptions options;
  options.listening_fd = arguments.listening_fd;
  options.started_nanos = ProcessStartWallNanos();
  options.exit_hooks = &hooks;
  options.on_begun = [&result] { result.NoteBegun(); };
  options.stop = &stop;
  options.runtime = runtime.get();
  options.tells_end = !arguments.end_told;
  options.judged = arguments.lost_fd >= 0;  // by our parent
  if (arguments.lost_fd >= 0) {
    options.on_lost = [fd = arguments.lost_fd](TaskId lost) { TellLost(fd, TaskName(lost)); };
  }
  options.on_abort = [&](ExitCode code) {
    busy_deadline.Arm(ProcessExitCode(code, config.failure), kBusy,
                      [&result, code] { result.WriteEnding(StatusOf(code)); });
  };
  ExitCode code = ExitCode::kOk;
  try {
    result.Write(RunTask(config, *arguments.task, *transport, log, options));
  } catch (const RunStopped& stopped) {
    code = stopped.code();
    log.Error("{}", stopped.what());
    RunSummary summary = stopped.summary();
    summary.wall_s = SecondsSinceStart();
    result.WriteEnding(summary);
  } catch (const Failure& failure) {
    code = failure.code();
    log.Error("{}", failure.what());
  } catch (const std::exception& error) {
    code = ExitCode::kInternal;
    log.Error("{}", FailureText(error));
  }
  if (code != ExitCode::kOk) result.WriteEnding(StatusOf(code, stop));
  const int exit_code = ProcessExitCode(code, config.failure);
  exit_deadline.Arm(exit_code, kTearDown);
  return exit_code;
}

}  // namespace

int RunTaskCommand(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  if (arguments.from) return RunScheduledTask(arguments, new_runtime, errors);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, {});
  ResultFile result(arguments.result, errors, arguments.result_fd);
  try {
    LoadOptions options;
    options.log_json = &errors.json;
    const Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
    CheckIndex(config.cluster, *arguments.task);
    Console console(arguments.relay_live ? LiveLine::kRelayed : LiveLineOf(config.log));
    Logger log(TaskName(*arguments.task), LogOptionsOf(config.log, console));
    for (const std::string& note : arguments.notes) log.Info("{}", note);
    PrepareProcess(config);
    ExitHooks hooks;
    StopRequest stop;
    SignalPipe signals({SIGINT, SIGTERM, SIGHUP});
    const EndOnSignal end_on_signal(signals, GraceOf(config.failure), stop, result, hooks, log, console,
                                    Leaves(config.failure, *arguments.task));
    return RunLogged(arguments, config, new_runtime, stop, hooks, log, result);
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  }
}

}  // namespace dtrain
