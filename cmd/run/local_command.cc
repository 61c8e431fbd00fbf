#include "cmd/run/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/names.h"
#include "cmd/common/arguments.h"
#include "cmd/common/load_config.h"
#include "cmd/common/program.h"
#include "cmd/common/report.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/run/child_process.h"
#include "cmd/run/exit_verdict.h"
#include "cmd/run/private_sockets.h"
#include "cmd/run/process_end.h"
#include "cmd/run/run_result.h"
#include "cmd/run/supervisor.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/sets/source.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// Listeners: the sockets that children inherit.
struct Listeners {
  std::vector<PrivateSockets::Listening> ps;
  std::optional<PrivateSockets::Listening> feed;  // where worker 0 feeds the others; unset: it does not
};

// Returns the arguments of every child: the file, the flags, and the addresses of this cluster.
std::vector<std::string> CommonArguments(const ConfigArguments& config, const Config& spec,
                                         const Listeners& listeners) {
  std::vector<std::string> names = LocalNames(static_cast<int>(spec.cluster.worker.size()));
  if (listeners.feed) names[0] = listeners.feed->address;
  std::vector<std::string> addresses;
  for (const PrivateSockets::Listening& socket : listeners.ps) addresses.push_back(socket.address);
  std::vector<std::string> sets = config.sets;
  sets.push_back(SetAddresses("cluster.ps", addresses));
  sets.push_back(SetAddresses("cluster.worker", names));
  sets.push_back("net.bind=null");
  if (spec.security.keys == kAutoKeys) sets.push_back("security.keys=null");
  if (spec.run.has_directory()) {  // this process writes its record
    sets.push_back(SetText("run.dir", kNoRunDirectory));
    sets.push_back(SetText("checkpoint.dir", spec.checkpoint.dir));
    sets.push_back(SetText("log.dir", spec.log.dir));
    sets.push_back(SetText("summary.dir", spec.summary.dir));
  }
  std::vector<std::string> common = {"--config", config.path};
  for (const std::string& set : sets) {
    common.push_back("--set");
    common.push_back(set);
  }
  return common;
}

// Adds what all rows of a text were read for, so that no child reads them for it again.
ConfigArguments WithFound(const DataShape& shape, const Config& config, ConfigArguments arguments) {
  const DataFormat format = config.data.train.format;
  // With model.outputs whole numbers are no names.
  const bool named = !shape.form.classes.empty();
  if (IsText(format) && !config.model.outputs && HasOutputPerClass(config.model) && !named) {
    arguments.sets.push_back(fmt::format("model.outputs={}", shape.classes.value_or(0)));
  }
  if (format == DataFormat::kLibsvm && !config.model.inputs && !config.data.whole_keys) {
    arguments.sets.push_back(fmt::format("model.inputs={}", shape.inputs));
  }
  return arguments;
}

// Returns a command for each ps and worker of `spec`. `orders`: for each ps. With `live`, worker 0 sends its
// live line to this process.
std::vector<ChildCommand> LocalCommands(const ConfigArguments& config, const Config& spec,
                                        const Listeners& listeners, const std::vector<Pipe>& orders,
                                        bool live) {
  std::vector<ChildCommand> commands;
  for (const TaskId task : TasksOf(spec.cluster)) {
    ChildCommand& command = commands.emplace_back(ChildFor(spec, task));
    command.arguments = CommonArguments(config, spec, listeners);
    const auto add = [&](const std::vector<std::string>& words) {
      command.arguments.insert(command.arguments.end(), words.begin(), words.end());
    };
    add(TaskWords(task));
    add({"--reports", "--brief"});
    const auto index = static_cast<size_t>(task.index);
    const bool worker_0 = task.role == Role::kWorker && index == 0;
    const PrivateSockets::Listening* const listens = task.role == Role::kPs       ? &listeners.ps[index]
                                                     : worker_0 && listeners.feed ? &*listeners.feed
                                                                                  : nullptr;
    if (listens != nullptr) {
      add({"--listen-fd", std::to_string(listens->fd)});
      command.inherited = {listens->fd};
    }
    if (live && task.role == Role::kWorker) add({"--relay-live"});
    const std::vector<std::string>& train = spec.data.train.path;
    if (worker_0 && !train.empty() && IsStandardInput(train[0])) command.input = STDIN_FILENO;
    if (ParentLogsEnd(spec.log)) add({"--end-told"});
    const bool leads = task.role == Role::kPs && index == 0;
    if (task.role == Role::kPs) {
      command.input = orders[index].read_fd();
      command.orders = orders[index].write_fd();
    }
    if (leads && spec.run.has_directory()) add({"--status-dir", spec.run.dir});
  }
  return commands;
}

// Gives each task of a cluster of threads its own name; no port is opened.
void NameForThreads(ClusterConfig* cluster) {
  int port = 0;
  for (std::string& name : cluster->ps) name = fmt::format("127.0.0.1:{}", ++port);
  for (std::string& name : cluster->worker) name = fmt::format("127.0.0.1:{}", ++port);
}

// Loads the config in the parent first, so that its errors are printed once and not by every child.
// `made_up`: the value of run.dir if none is given.
Config LoadLocal(const LocalArguments& arguments, bool* log_json, const std::string& made_up = "") {
  LoadOptions options = SizedOptions(arguments.size);
  options.log_json = log_json;
  options.made_up_run = made_up;
  options.one_process = arguments.in_process;
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  if (!arguments.in_process) RequireRegularFile(arguments.config.path);
  MakeLocal(arguments.size, &config);
  if (arguments.in_process) NameForThreads(&config.cluster);
  return config;
}

// All tasks run on this machine, so their sum must fit in its memory. Returns the shape of the data.
DataShape CheckMemory(const Config& given) {
  Config config = given;
  DataShape shape = ResolveShape(&config);
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  CheckFits(ClusterNeed(config, layout, EstimateDataSize(config)));
  return shape;
}

// Returns "1 ps and 2 workers here; to watch the run: dtrain status runs/flowers-20260131-120000".
std::string StartLine(const Config& config, const RunDirectory* directory) {
  const std::string size = fmt::format("{} ps and {} here", config.cluster.ps.size(),
                                       Plural(static_cast<int64_t>(config.cluster.worker.size()), "worker"));
  if (directory == nullptr) return size;
  return size + "; to watch the run: " + directory->WatchCommand();
}

int RunThreads(const Config& config, const DataShape& shape, NewRuntime new_runtime, SignalPipe& signals,
               const ErrorLines& errors, ResultFile& result) {
  Console console(LiveLineOf(config.log, errors.quiet));
  LogOptions log_options = LogOptionsOf(config, console, errors.quiet);
  log_options.watch = result.Watch();
  log_options.brief = true;
  LogOptions own_options = OwnLogOptions(config, console, errors.quiet);
  own_options.watch = result.Watch();
  Logger log("local", own_options);
  ExitHooks hooks;
  StopRequest stop;
  const ProcessEnd end(signals, result,
                       RunningTasks{stop, hooks, log, console, GraceOf(config.failure), /*leaves=*/false,
                                    /*others_tell=*/false});
  TaskOptions options;
  options.started_nanos = ProcessStartWallNanos();
  options.exit_hooks = &hooks;
  options.stop = &stop;
  const std::unique_ptr<gpu::cuda::Runtime> runtime = new_runtime();
  options.runtime = runtime.get();
  options.tells_end = !ParentLogsEnd(config.log);
  options.shape = &shape;
  options.on_reached = [&result](const RunSummary& reached) { result.NoteReached(reached); };
  if (config.run.has_directory()) options.status_directory = config.run.dir;
  try {
    const RunSummary summary = RunClusterInProcess(config, log_options, options);
    console.End();
    LogClosingLines(config, summary, log);
    ShowTable(config, summary, std::nullopt, errors);
    const bool is_shown = ShowResult(config, summary, errors, result);
    const bool is_kept = result.Write(summary);
    result.TellDirectory();
    return static_cast<int>(is_shown && is_kept ? ExitCode::kOk : ExitCode::kInternal);
  } catch (const RunStopped& stopped) {
    console.End();
    errors.Print(FailureText(stopped), LevelOf(stopped.code()), kEventRunEnded);
    Ending ending = EndingOf(stopped);
    ending.status = stopped.summary().status;
    if (stopped.code() != ExitCode::kInternal) ending.blame = {};
    result.WriteEnding(ending, stopped.summary());
    result.TellDirectory();
    return ending.exit_code;
  } catch (const Failure& failure) {
    console.End();
    Ending ending = EndingOf(failure);
    ending.status = StatusOf(failure.code(), stop);
    ending.exit_code = ProcessExitCode(failure.code(), config.failure);
    result.WriteEnding(ending);
    errors.Print(FailureText(failure), LogLevel::kError, kEventRunEnded);
    result.TellDirectory();
    return ending.exit_code;
  }
}

Outcome RunChildren(const LocalArguments& arguments, const Config& config, const DataShape& shape,
                    SignalPipe& signals, Console& console, RunDirectory* directory) {
  Supervisor supervisor(TimeoutsOf(config.failure), RestartRulesOf(config.failure), signals, console,
                        {config.log.json, arguments.quiet});
  PrivateSockets sockets;
  Listeners listeners;
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    listeners.ps.push_back(sockets.Listen(fmt::format("ps-{}", ps)));
  }
  if (FeedsOthers(config)) listeners.feed = sockets.Listen("worker-0");
  if (directory != nullptr) {
    std::vector<std::string> addresses;
    for (const PrivateSockets::Listening& ps : listeners.ps) addresses.push_back(ps.address);
    directory->SetAddresses(addresses);
  }
  std::vector<Pipe> orders;
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    fcntl(orders.emplace_back("dtrain local").write_fd(), F_SETFL, O_NONBLOCK);
  }
  std::vector<ChildCommand> commands =
      LocalCommands(WithFound(shape, config, arguments.config), config, listeners, orders, console.live());
  for (ChildCommand& command : commands) command.why_not_again = [&sockets] { return sockets.WhyGone(); };
  supervisor.Start(commands);
  // The socket of a dead ps must refuse connections, unless a new process takes it over.
  if (config.failure.restarts == 0) sockets.Close();
  return supervisor.Run();
}

}  // namespace

int RunLocalCommand(const LocalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  if (arguments.config.dump) {
    fmt::print("{}", DumpConfig(LoadLocal(arguments, nullptr)));
    return 0;
  }
  errors.quiet = arguments.quiet;
  SignalPipe signals = arguments.in_process ? SignalPipe({SIGINT, SIGTERM, SIGHUP})
                                            : SignalPipe({SIGINT, SIGTERM, SIGHUP, SIGCHLD});
  ResultFile result(arguments.result, errors);
  try {
    std::optional<ProcessEnd> loading(std::in_place, signals, result, errors);
    PlacedRun placed = PlaceRun(
        arguments.config.path, {"local", ""},
        [&](const std::string& text) { errors.Print(text, LogLevel::kWarning); },
        [&](const std::string& made_up) { return LoadLocal(arguments, &errors.json, made_up); });
    const Config& config = placed.config;
    result.Begin(config, std::move(placed.directory));
    result.Lead(config, placed.why_none);
    result.Note([&](RunAccount& account) {
      account.logs = LogPaths(config);
      for (const TaskId task : TasksOf(config.cluster)) account.identity.hosts[TaskName(task)] = HostName();
    });
    const DataShape shape = CheckMemory(config);
    if (config.log.level <= static_cast<int>(LogLevel::kInfo)) {
      errors.Print(StartLine(config, result.directory()), LogLevel::kInfo);
    }
    loading.reset();
    if (arguments.in_process) return RunThreads(config, shape, new_runtime, signals, errors, result);
    Console console(LiveLineOf(config.log, arguments.quiet));
    const Outcome outcome = RunChildren(arguments, config, shape, signals, console, result.directory());
    console.End();
    LogOptions log_options = OwnLogOptions(config, console, arguments.quiet);
    log_options.watch = result.Watch();
    Logger log("local", log_options);
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
