#include "cmd/launch/launch.h"

#include <errno.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/log.h"
#include "cmd/common/load_config.h"
#include "cmd/common/program.h"
#include "cmd/common/report.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/launch/copy.h"
#include "cmd/launch/fetch.h"
#include "cmd/launch/plan.h"
#include "cmd/launch/remote_task.h"
#include "cmd/launch/ssh.h"
#include "cmd/run/exit_verdict.h"
#include "cmd/run/process_end.h"
#include "cmd/run/supervisor.h"
#include "trainer/config/dump.h"
#include "trainer/keys/run_keys.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// How long the other tasks may take to end after a failure; a cut link takes time to be noticed.
constexpr milliseconds kAfterFailure{1500};
// How long until a task whose connection broke has ended on its machine and its address is free again.
constexpr milliseconds kRemoteEnd{3500};

// Whether a task listens where other machines can reach it.
bool ListensBeyond(const Config& config) {
  if (!config.net.bind.empty()) return !IsLoopbackHost(HostOf(config.net.bind));
  const auto beyond = [](const std::string& address) { return !IsLoopbackHost(HostOf(address)); };
  return std::any_of(config.cluster.ps.begin(), config.cluster.ps.end(), beyond) ||
         (FeedsOthers(config) && beyond(config.cluster.worker[0]));
}

// `made_up`: the value of run.dir if none is given.
Config LoadLaunched(const LaunchArguments& arguments, bool* log_json, const std::string& made_up = "") {
  LoadOptions options;
  options.placed = true;
  options.made_up_run = made_up;
  options.log_json = log_json;
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  RequireRegularFile(arguments.config.path);
  // The safe way is the default.
  const SecurityConfig& security = config.security;
  if (security.keys.empty() && !security.insecure && ListensBeyond(config)) config.security.keys = kAutoKeys;
  return config;
}

// Checks, before anything is copied or started, what would fail on every machine.
void CheckHere(const Config& config) {
  for (size_t i = 0; i < config.cluster.ps.size(); ++i)
    ListenAddress(config, {Role::kPs, static_cast<int>(i)});
  if (FeedsOthers(config)) ListenAddress(config, {Role::kWorker, 0});
  const std::string& ssh_config = config.launch.ssh_config;
  if (!ssh_config.empty() && access(ssh_config.c_str(), R_OK) != 0) {
    throw UserError("launch.ssh_config = {}: cannot be opened: {}. Check the path.", ssh_config,
                    ErrnoText(errno));
  }
}

Outcome RunTasks(const std::vector<PlannedTask>& tasks, const Config& config, SignalPipe& signals,
                 Console& console, bool quiet) {
  ShutdownTimeouts timeouts = TimeoutsOf(config.failure);
  timeouts.after_failure = kAfterFailure;
  timeouts.before_restart = kRemoteEnd;
  const KeepAlive keep_alive(tasks.size());
  std::deque<LogFile> logs;
  Supervisor supervisor(timeouts, RestartRulesOf(config.failure), signals, console, {config.log.json, quiet});
  std::optional<RunKeys> keys;
  if (config.security.keys == kAutoKeys) keys.emplace(config.cluster);
  std::vector<ChildCommand> commands;
  for (const PlannedTask& planned : tasks) {
    ChildCommand& command = commands.emplace_back(ChildFor(config, planned.task));
    command.program = planned.command.front();
    command.arguments.assign(planned.command.begin() + 1, planned.command.end());
    const Pipe& orders = keep_alive.pipe(commands.size() - 1);
    command.input = orders.read_fd();
    command.orders = orders.write_fd();
    if (!config.log.dir.empty()) command.log = &logs.emplace_back(command.name, config.log.dir);
    command.start = [&](const ChildCommand& task, const ChildSinks& sinks) {
      return std::make_unique<RemoteTask>(task, sinks, planned.machine, config, orders,
                                          keys ? keys->TextFor(planned.task) : "", supervisor.results());
    };
  }
  supervisor.Start(commands);
  return supervisor.Run();
}

int PrintPlan(const LaunchArguments& arguments) {
  const Config config = LoadLaunched(arguments, nullptr);
  CheckHere(config);
  const std::vector<PlannedTask> tasks = PlanLaunch(arguments.config, config, {});
  fmt::print("{}{}", CopyText(FilesToCopy(tasks, arguments.config.path)), DataText(tasks, config.data));
  if (config.security.keys == kAutoKeys) {
    fmt::print(
        "# keys are made at the launch; to run a line by hand, make some with dtrain keygen and set "
        "security.keys\n");
  }
  for (const PlannedTask& planned : tasks) fmt::print("{}\n", ShellLine(planned.command));
  return 0;
}

}  // namespace

int RunLaunchCommand(const LaunchArguments& arguments, ErrorLines& errors) {
  if (arguments.config.dump) {
    fmt::print("{}", DumpConfig(LoadLaunched(arguments, nullptr)));
    return 0;
  }
  if (arguments.dry_run) return PrintPlan(arguments);
  errors.quiet = arguments.quiet;
  SignalPipe signals({SIGINT, SIGTERM, SIGHUP, SIGCHLD});
  ResultFile result(arguments.result, errors);
  try {
    std::optional<ProcessEnd> loading(std::in_place, signals, result, errors);
    const std::string start_id = NewStartId();
    PlacedRun placed = PlaceRun(
        arguments.config.path, {"launch", start_id},
        [&](const std::string& text) { errors.Print(text, LogLevel::kWarning); },
        [&](const std::string& made_up) {
          Config config = LoadLaunched(arguments, &errors.json, made_up);
          CheckHere(config);
          return config;
        });
    const Config& config = placed.config;
    Console console(LiveLineOf(config.log, arguments.quiet));
    const std::string run = placed.directory != nullptr ? placed.directory->Shown() : "";
    const bool named = placed.directory != nullptr && placed.directory->is_named();
    const PlanFor who{/*launcher=*/true, console.live(), ParentLogsEnd(config.log), run,
                      start_id,          named};
    result.Begin(config, std::move(placed.directory));
    result.Lead(config, placed.why_none);
    const std::vector<PlannedTask> tasks = PlanLaunch(arguments.config, config, who);
    result.Note([&](RunAccount& account) {
      account.logs = LogPaths(config);
      for (const PlannedTask& planned : tasks) {
        account.identity.hosts[TaskName(planned.task)] = planned.machine.name;
      }
    });
    LogOptions log_options = OwnLogOptions(config, console, arguments.quiet);
    log_options.watch = result.Watch();
    Logger log("launch", log_options);
    CopyToMachines(FilesToCopy(tasks, arguments.config.path), config.launch, log);
    loading.reset();
    const Outcome outcome = RunTasks(tasks, config, signals, console, arguments.quiet);
    console.End();
    if (outcome.results.Stage() != RunStage::kStarting) {
      FetchFolders(tasks, run, FoldersToFetch(config, arguments.fetch), config, signals, log);
    }
    return FinishRun(config, outcome, log, errors, result);
  } catch (const std::exception& failure) {
    const Ending ending = EndingOf(failure);
    result.WriteEnding(ending);
    errors.Print(FailureText(failure), LogLevel::kError, kEventRunEnded);
    result.TellDirectory();
    return ending.exit_code;
  }
}

}  // namespace dtrain
