#include "cmd/launch/launch.h"

#include <errno.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <deque>
#include <optional>

#include "base/log.h"
#include "cmd/common/load_config.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"

#include "cmd/launch/copy.h"
#include "cmd/launch/plan.h"
#include "cmd/launch/ssh.h"
#include "cmd/run/exit_verdict.h"
#include "cmd/run/process_end.h"
#include "cmd/run/run_results.h"
#include "cmd/run/supervisor.h"
#include "cmd/run/task_child.h"
#include "trainer/config/dump.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// All have to end soon after a link was cut, which took its time to be noticed.
constexpr milliseconds kAfterFailure{1500};
// Until a task whose connection broke has surely ended there, and its address is free again.
constexpr milliseconds kEndsThere{3500};

Config LoadLaunched(const LaunchArguments& arguments, bool* log_json) {
  LoadOptions options;
  options.placed = true;
  options.log_json = log_json;
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  RequireRegularFile(arguments.config.path);
  return config;
}

// What would fail on every machine is told here, once, before anything is copied or started.
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

// The relay of one task.
ChildCommand RelayFor(const PlannedTask& planned, const Config& config, const RunResults& results,
                      int lost_fd) {
  ChildCommand command = ChildFor(config, planned.task);
  command.kill_signal = SIGUSR1;
  command.arguments = {"relay",
                       "--task=" + command.name,
                       "--machine=" + planned.machine.name,
                       "--login=" + LoginThere(planned.machine, config.launch),
                       fmt::format("--peer-lost-exit={}", config.failure.peer_lost_exit),
                       fmt::format("--startup-timeout-s={}", config.failure.startup_timeout_s)};
  if (config.log.json) command.arguments.push_back("--json");
  Inherit(&command, "--lost-fd", lost_fd);
  Inherit(&command, "--begun-fd", results.ps_fd());
  const auto index = static_cast<size_t>(planned.task.index);
  if (planned.task.role == Role::kWorker) Inherit(&command, "--result-fd", results.worker_fd(index));
  if (planned.task.role == Role::kPs && index == 0) Inherit(&command, "--result-fd", results.ps_fd());
  command.arguments.push_back("--");
  command.arguments.insert(command.arguments.end(), planned.command.begin(), planned.command.end());
  return command;
}

Outcome RunRelays(const std::vector<PlannedTask>& tasks, const Config& config, SignalPipe& signals,
                  const RunResults& results, Console& console) {
  ShutdownTimeouts timeouts = TimeoutsOf(config.failure);
  timeouts.after_failure = kAfterFailure;
  timeouts.before_restart = kEndsThere;
  Supervisor supervisor(timeouts, RestartRulesOf(config.failure), signals, console, config.log.json);
  std::vector<ChildCommand> commands;
  std::deque<LogFile> logs;
  for (const PlannedTask& planned : tasks) {
    commands.push_back(RelayFor(planned, config, results, supervisor.lost_fd()));
    if (config.log.dir.empty()) continue;
    commands.back().log = &logs.emplace_back(commands.back().name, config.log.dir);
  }
  supervisor.Start(commands, [&results] { return results.Stage(); });
  return supervisor.Run();
}

int PrintPlan(const LaunchArguments& arguments) {
  const Config config = LoadLaunched(arguments, nullptr);
  CheckHere(config);
  const std::vector<PlannedTask> tasks = PlanLaunch(arguments.config, config, {});
  fmt::print("{}{}", CopyText(FilesToCopy(tasks, arguments.config.path)), DataText(tasks, config.data));
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
  SignalPipe signals({SIGINT, SIGTERM, SIGHUP, SIGCHLD});
  ResultFile result(arguments.result, errors);
  try {
    std::optional<ProcessEnd> loading(std::in_place, signals, result, errors);
    const Config config = LoadLaunched(arguments, &errors.json);
    CheckHere(config);
    Console console(LiveLineOf(config.log));
    const std::vector<PlannedTask> tasks =
        PlanLaunch(arguments.config, config, {/*relays=*/true, console.live(), ParentLogsEnd(config.log)});
    Logger log("launch", OwnLogOptions(config.log, console));
    CopyToMachines(FilesToCopy(tasks, arguments.config.path), config.launch, log);
    loading.reset();
    const RunResults results(config.cluster.worker.size());
    const Outcome outcome = RunRelays(tasks, config, signals, results, console);
    console.End();
    return FinishRun(config, outcome, results, log, errors, result);
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  } catch (...) {
    result.WriteEnding(StatusOf(ExitCode::kInternal));
    throw;
  }
}

}  // namespace dtrain
