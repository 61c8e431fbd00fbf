#include "cmd/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/names.h"
#include "cmd/common/load_config.h"
#include "cmd/common/report.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/models/models.h"
#include "cmd/run/child_process.h"
#include "cmd/run/process_end.h"
#include "cmd/run/run_result.h"
#include "trainer/task/run_log.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// The time for destructors; all other work ends within 5 s of the run's end.
constexpr milliseconds kTeardownTimeout{3000};
// How long a task may continue with a step or with loading after the run has failed or was stopped.
constexpr milliseconds kBusy{4000};

// Returns "Use --index 0.", "Use --index 0, 1 or 2." or "Use --index 0 to 7."
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

// Whether SIGTERM and SIGHUP make only this task leave the run.
bool LeavesAlone(const FailureConfig& failure, TaskId task) {
  return failure.on_sigterm == OnSigterm::kLeave && task.role == Role::kWorker && task.index != 0;
}

// Tells the parent why this task ends, and the log the rest.
void TellEnd(ExitCode code, const std::string& why, Logger& log, ResultFile& result) {
  const LogLevel level = LevelOf(code);
  if (result.NoteEnd(level, why)) {
    log.WriteToFile(level, why);
  } else {
    log.RecordAlways(level, why, {{"event", kEventRunEnded}});
  }
}

// Writes the result and the last lines of a task that ends with `code`, for `why`, unless they are written.
// Returns the exit code of the process. Thread: any.
int TellFailure(const Config& config, TaskId task, ExitCode code, const std::string& why, RunSummary summary,
                const StopRequest& stop, Logger& log, ResultFile& result) {
  Ending ending{StatusOf(code, stop), ProcessExitCode(code, config.failure), {}};
  if (!summary.status.empty()) ending.status = summary.status;
  const bool as_asked = code == ExitCode::kInterrupted || code == ExitCode::kTerminated;
  if (!as_asked) ending.blame = BlameFor(task, HostName(), why);
  if (!result.WriteEnding(ending, std::move(summary))) return ending.exit_code;
  TellEnd(code, why, log, result);
  result.TellDirectory();
  return ending.exit_code;
}

// The tasks whose processes the parent has seen killed, as it says on standard input.
std::vector<std::pair<TaskId, std::string>> KilledIn(PipeLines& orders) {
  std::vector<std::pair<TaskId, std::string>> killed;
  const std::string word = std::string(kLostWord) + " ";
  orders.Read([&](const std::string& line) {
    const size_t colon = line.find(": ");
    if (line.rfind(word, 0) != 0 || colon == std::string::npos) return;
    const std::optional<TaskId> task = TaskNamed(line.substr(word.size(), colon - word.size()));
    if (task) killed.emplace_back(*task, line.substr(colon + 2, line.find('\n') - colon - 2));
  });
  return killed;
}

// How the task runs in this process. What is given outlives the options.
TaskOptions OptionsFor(const TaskArguments& arguments, const Config& config, const StopRequest& stop,
                       ExitHooks& hooks, Logger& log, ResultFile& result, ProcessEnd& end,
                       PipeLines& orders) {
  TaskOptions options;
  if (orders.fd() >= 0) options.take_killed = [&orders] { return KilledIn(orders); };
  options.listening_fd = arguments.listening_fd;
  options.started_nanos = ProcessStartWallNanos();
  options.exit_hooks = &hooks;
  options.on_begun = [&result](const RunIdentity& identity) { result.NoteBegun(identity); };
  options.stop = &stop;
  options.tells_end = !arguments.end_told;
  options.status_directory = arguments.status_directory;
  if (config.run.has_directory()) options.status_directory = config.run.dir;
  options.supervised = arguments.reports;
  options.on_lost = [&result](TaskId lost, const std::string& why) { result.NoteLost(TaskName(lost), why); };
  options.on_reached = [&result](const RunSummary& reached) { result.NoteReached(reached); };
  options.on_abort = [&, task = *arguments.task](ExitCode code, const std::string& why) {
    end.EndBy(ProcessExitCode(code, config.failure), kBusy, [&config, task, code, why, &stop, &log, &result] {
      TellFailure(config, task, code, why, {}, stop, log, result);
    });
  };
  return options;
}

// Returns the exit code of a run that has just thrown: call it where that is caught. Its log and its result
// get why.
int ReportFailure(const Config& config, TaskId task, const StopRequest& stop, Logger& log,
                  ResultFile& result) {
  ExitCode code = ExitCode::kInternal;
  std::string why;
  RunSummary summary;
  try {
    throw;
  } catch (const RunStopped& stopped) {
    code = stopped.code();
    why = stopped.what();
    summary = stopped.summary();
  } catch (const Failure& failure) {
    code = failure.code();
    why = failure.what();
  } catch (const std::exception& error) {
    why = FailureText(error);
  }
  return TellFailure(config, task, code, why, std::move(summary), stop, log, result);
}

// Shows the end of a run that is done to the person who has started this task. The run's result is shown
// once. Returns false if that failed.
bool ShowOwnEnd(const Config& config, TaskId task, const RunSummary& summary, const ErrorLines& errors,
                const ResultFile& result) {
  const bool for_all = TellsForAll(task, summary);
  if (task.role != Role::kWorker) return true;
  ShowTable(config, summary, for_all ? std::nullopt : std::optional<int>(task.index), errors);
  return !for_all || ShowResult(config, summary, errors, result);
}

// Loads the config by `load`, whose argument stands for a run.dir that is not given, and makes the directory
// of the run if this task has to: a ps 0 without a parent, or whose parent does not write the same one.
PlacedRun PlaceTask(const TaskArguments& arguments, const ErrorLines& errors,
                    const std::function<Config(const std::string& made_up)>& load) {
  const TaskId task = *arguments.task;
  const bool leads = task.role == Role::kPs && task.index == 0;
  const auto tell = [&](const std::string& text) { errors.Print(text, LogLevel::kWarning); };
  const RunDirectory::Writer writer{TaskName(task), arguments.start_id};
  if (leads && !arguments.reports) return PlaceRun(arguments.config.path, writer, tell, load);
  PlacedRun placed{load(""), nullptr};
  const Config& config = placed.config;
  if (!leads || !config.run.has_directory()) return placed;
  if (RunDirectory::IsWrittenByOther(config.run.dir, writer)) return placed;
  placed.directory = RunDirectory::Open(config.run.dir, writer, arguments.named_run);
  placed.directory->Begin(config, arguments.config.path);
  return placed;
}

// Returns standard output as a descriptor for the report alone. Other output to it goes to standard error.
int ReserveOutput() {
  const int report = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (report < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) throw NoDescriptor("the report", errno);
  return report;
}

// Returns where this process writes its result; empty: nowhere. All tasks have the same command line, and
// `path` is for worker 0, or for a process that fails before it knows which task it is.
std::string ResultOf(const std::string& path, const Scheduled& scheduled) {
  if (path.empty() || !scheduled.assignment) return path;
  if (!scheduled.assignment->task) return path == kStandardOutput ? path : path + ".evaluator";
  const TaskId task = *scheduled.assignment->task;
  return task.role == Role::kWorker && task.index == 0 ? path : "";
}

Config Load(const TaskArguments& arguments, const LoadOptions& options, const Scheduled& scheduled,
            const ErrorLines& errors) {
  try {
    Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
    // An evaluator needs a checkpoint directory.
    if (!scheduled.assignment->task) EvaluatedDirectory(config, scheduled);
    RefuseInputOfMpi(EnvironmentOf(environ), arguments.from->scheduler == Scheduler::kMpi, config.data);
    return config;
  } catch (const Failure& failure) {
    ResultFile(ResultOf(arguments.result, scheduled), errors).WriteEnding(EndingOf(failure));
    throw;
  }
}

// Returns the config with the cluster as --set options.
ConfigArguments WithCluster(ConfigArguments config, const ClusterConfig& cluster) {
  config.sets.push_back(SetAddresses("cluster.ps", cluster.ps));
  config.sets.push_back(SetAddresses("cluster.worker", cluster.worker));
  return config;
}

// Returns the same task with role, index and cluster spelled out.
TaskArguments Plain(const TaskArguments& arguments, const Scheduled& scheduled) {
  const Assignment& assignment = *scheduled.assignment;
  TaskArguments plain = arguments;
  plain.from.reset();
  plain.task = assignment.task;
  plain.config = WithCluster(arguments.config, assignment.cluster);
  plain.notes.push_back(assignment.name);
  if (!scheduled.replaced.empty()) plain.notes.push_back(scheduled.replaced);
  plain.result = ResultOf(arguments.result, scheduled);
  return plain;
}

// Runs the task, or the evaluator, that a scheduler's environment says this process is.
int RunScheduledTask(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  LoadOptions options;
  options.log_json = &errors.json;
  Scheduled scheduled;
  UseScheduler(arguments.from, arguments.config, &options, &scheduled);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, options);
  const Config config = Load(arguments, options, scheduled, errors);
  if (scheduled.assignment->task) return RunTaskCommand(Plain(arguments, scheduled), new_runtime, errors);
  EvalArguments evaluator;
  evaluator.checkpoint.path = config.checkpoint.dir;
  evaluator.config = WithCluster(arguments.config, scheduled.assignment->cluster);
  evaluator.result = ResultOf(arguments.result, scheduled);
  evaluator.follow = true;
  try {
    return RunEvalCommand(evaluator, new_runtime, errors);
  } catch (const PeerLost& lost) {
    errors.Print(FailureText(lost));
    return ProcessExitCode(lost.code(), config.failure);
  }
}

}  // namespace

int RunTaskCommand(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  errors.quiet = arguments.quiet;
  if (arguments.from) return RunScheduledTask(arguments, new_runtime, errors);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, {});
  ResultFile result(arguments.result, errors, arguments.reports ? ReserveOutput() : -1);
  try {
    const TaskId task = *arguments.task;
    PlacedRun placed = PlaceTask(arguments, errors, [&](const std::string& made_up) {
      LoadOptions load_options;
      load_options.log_json = &errors.json;
      load_options.made_up_run = made_up;
      Config loaded = LoadConfig(arguments.config.path, arguments.config.sets, load_options);
      CheckIndex(loaded.cluster, task);
      if (!arguments.reports) RefuseInputOfMpi(EnvironmentOf(environ), /*from_mpi=*/false, loaded.data);
      return loaded;
    });
    const Config& config = placed.config;
    result.Begin(config, std::move(placed.directory));
    const bool leads = task.role == Role::kPs && task.index == 0;
    if (leads && !arguments.reports) result.Lead(config, placed.why_none);
    if (leads && !arguments.reports && result.directory() != nullptr) {
      errors.Print("to watch the run: " + result.directory()->WatchCommand(), LogLevel::kInfo);
    }
    Console console(arguments.relay_live ? LiveLine::kRelayed : LiveLineOf(config.log, arguments.quiet));
    LogOptions log_options = LogOptionsOf(config, console, arguments.quiet);
    log_options.watch = result.Watch();
    log_options.brief = arguments.brief;
    Logger log(TaskName(task), log_options);
    if (!log.path().empty()) result.Note([&](RunAccount& account) { account.logs = {log.path()}; });
    for (const std::string& note : arguments.notes) log.Info("{}", note);
    PrepareProcess(config);
    ExitHooks hooks;
    StopRequest stop;
    SignalPipe signals({SIGINT, SIGTERM, SIGHUP});
    ProcessEnd end(signals, result,
                   RunningTasks{stop, hooks, log, console, GraceOf(config.failure),
                                LeavesAlone(config.failure, task), arguments.reports || leads});
    const auto runtime = task.role == Role::kWorker ? new_runtime() : nullptr;  // a ps computes on no GPU
    const auto keys = OpenKeys(config.security, task, arguments.keys_fd, log);
    const auto transport = NewNetworkTransport(config, keys);
    PipeLines orders(task.role == Role::kPs && arguments.reports ? STDIN_FILENO : -1);
    TaskOptions options = OptionsFor(arguments, config, stop, hooks, log, result, end, orders);
    options.runtime = runtime.get();
    int exit_code = 0;
    try {
      const RunSummary summary = RunTask(config, task, *transport, log, options);
      const bool is_shown = arguments.reports || ShowOwnEnd(config, task, summary, errors, result);
      const bool is_kept = result.Write(summary);
      if (!is_shown || !is_kept) exit_code = static_cast<int>(ExitCode::kInternal);
      result.TellDirectory();
    } catch (const std::exception&) {
      exit_code = ReportFailure(config, task, stop, log, result);
    }
    end.EndBy(exit_code, kTeardownTimeout);
    return exit_code;
  } catch (const Failure& failure) {
    Ending ending = EndingOf(failure);
    ending.blame.task = arguments.task;
    result.WriteEnding(ending);
    const std::string why = FailureText(failure);
    if (!result.NoteEnd(LogLevel::kError, why)) errors.Print(why, LogLevel::kError, kEventRunEnded);
    result.TellDirectory();
    return ending.exit_code;
  }
}

}  // namespace dtrain
