#include "cmd/local_command.h"

#include <signal.h>

#include "base/clock.h"
#include "cmd/cluster_size.h"
#include "cmd/end_on_signal.h"
#include "cmd/end_while_loading.h"
#include "cmd/load_config.h"
#include "cmd/local_cluster.h"
#include "cmd/local_verdict.h"
#include "cmd/result_file.h"
#include "cmd/run_end.h"
#include "cmd/run_results.h"
#include "cmd/signal_pipe.h"
#include "cmd/supervisor.h"
#include "cmd/task_child.h"
#include "trainer/config/dump.h"
#include "trainer/data/data_shape.h"
#include "trainer/data/source.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// Loaded here first: errors are then told once, not by every child.
Config LoadLocal(const LocalArguments& arguments, bool* log_json) {
  LoadOptions options = SizedOptions(arguments.size);
  options.log_json = log_json;
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  if (!arguments.in_process) RequireRegularFile(arguments.config.path);
  MakeLocal(arguments.size, &config);
  if (arguments.in_process) NameForThreads(&config.cluster);
  return config;
}

// All tasks run on this machine, so that here the sum must fit.
void CheckMemory(const Config& given) {
  Config config = given;
  ResolveModelShape(PeekShape(config), &config);
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  CheckFits(ClusterNeed(config, layout, EstimateDataSize(config)));
}

int RunThreads(const Config& config, NewRuntime new_runtime, SignalPipe& signals, const ErrorLines& errors,
               ResultFile& result) {
  Console console(LiveLineOf(config.log));
  const LogOptions log_options = LogOptionsOf(config.log, console);
  Logger log("local", OwnLogOptions(config.log, console));
  ExitHooks hooks;
  StopRequest stop;
  const EndOnSignal end_on_signal(signals, GraceOf(config.failure), stop, result, hooks, log, console,
                                  /*leaves=*/false);
  TaskOptions options;
  options.started_nanos = ProcessStartWallNanos();
  options.exit_hooks = &hooks;
  options.stop = &stop;
  const std::unique_ptr<gpu::cuda::Runtime> runtime = new_runtime();
  options.runtime = runtime.get();
  options.tells_end = !ParentTellsEnd(config.log);
  try {
    const RunSummary summary = RunClusterInProcess(config, log_options, options);
    console.End();
    TellRunEnd(config, summary, log);
    result.Write(summary);
    return 0;
  } catch (const RunStopped& stopped) {
    console.End();
    errors.Print(FailureText(stopped));
    result.WriteEnding(stopped.summary());
    return ProcessExitCode(stopped.code(), config.failure);
  } catch (const Failure& failure) {
    console.End();
    errors.Print(FailureText(failure));
    result.WriteEnding(StatusOf(failure.code(), stop));
    return ProcessExitCode(failure.code(), config.failure);
  }
}

Outcome RunChildren(const LocalArguments& arguments, const Config& config, SignalPipe& signals,
                    const RunResults& results, Console& console) {
  Supervisor supervisor(PatienceOf(config.failure), RestartRulesOf(config.failure), signals, console,
                        config.log.json);
  std::optional<SharedWithChildren> shared(std::in_place);
  shared->ps = std::vector<ListeningSocket>(config.cluster.ps.size());
  if (FeedsOthers(config)) shared->feed.emplace();
  shared->results = &results;
  shared->lost_fd = supervisor.lost_fd();
  supervisor.Start(LocalCommands(arguments.config, config, *shared, console.live()),
                   [&results] { return results.Stage(); });
  // The port of a dead ps must not look alive, unless another takes its place.
  if (config.failure.restarts == 0) shared.reset();
  return supervisor.Run();
}

}  // namespace

int RunLocalCommand(const LocalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  if (arguments.config.dump) {
    fmt::print("{}", DumpConfig(LoadLocal(arguments, nullptr)));
    return 0;
  }
  SignalPipe signals = arguments.in_process ? SignalPipe({SIGINT, SIGTERM, SIGHUP})
                                            : SignalPipe({SIGINT, SIGTERM, SIGHUP, SIGCHLD});
  ResultFile result(arguments.result, errors);
  try {
    std::optional<EndWhileLoading> loading(std::in_place, signals, result, errors);
    const Config config = LoadLocal(arguments, &errors.json);
    CheckMemory(config);
    loading.reset();
    if (arguments.in_process) return RunThreads(config, new_runtime, signals, errors, result);
    const RunResults results(config.cluster.worker.size());
    Console console(LiveLineOf(config.log));
    const Outcome outcome = RunChildren(arguments, config, signals, results, console);
    console.End();
    Logger log("local", OwnLogOptions(config.log, console));
    return Conclude(config, outcome, results, log, errors, result);
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  } catch (...) {
    result.WriteEnding(StatusOf(ExitCode::kInternal));
    throw;
  }
}

}  // namespace dtrain
