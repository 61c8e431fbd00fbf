#include "cmd/local_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/signal_name.h"
#include "cmd/end_on_signal.h"
#include "cmd/load_config.h"
#include "cmd/local_cluster.h"
#include "cmd/post_mortem.h"
#include "cmd/result_file.h"
#include "cmd/supervisor.h"
#include "trainer/config/dump.h"
#include "trainer/data/source.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// Where worker 0 leaves its result: memory without a name, so that nothing lies about at any ending.
class ResultMemory {
 public:
  ResultMemory() : fd_(memfd_create("dtrain-result", MFD_CLOEXEC)) { DT_CHECK(fd_ >= 0, errno); }
  ~ResultMemory() { close(fd_); }
  ResultMemory(const ResultMemory&) = delete;
  ResultMemory& operator=(const ResultMemory&) = delete;
  int fd() const { return fd_; }

  // Whether worker 0 has written anything, which it does first when the run begins.
  bool Begun() const { return lseek(fd_, 0, SEEK_END) > 0; }

  // What worker 0 has written; a summary without anything when it has not got that far.
  RunSummary Read() const {
    std::string text(static_cast<size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    RunSummary summary;
    const ssize_t got = pread(fd_, text.data(), text.size(), 0);
    if (got == static_cast<ssize_t>(text.size())) FromWireJson(text, &summary);
    return summary;
  }

 private:
  int fd_;
};

// The spec's counts, unless the flags say otherwise.
int Count(const std::optional<int>& flag, const std::vector<std::string>& spec, int otherwise) {
  if (flag) return *flag;
  return spec.empty() ? otherwise : static_cast<int>(spec.size());
}

// Loaded here first: errors are then told once, not by every child.
Config LoadLocal(const LocalArguments& arguments, bool* log_json) {
  LoadOptions options;
  options.cluster_optional = true;
  options.log_json = log_json;
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  const int ps = Count(arguments.ps, config.cluster.ps, kDefaultPs);
  const int workers = Count(arguments.workers, config.cluster.worker, kDefaultWorkers);
  if (config.cluster.min_workers.value_or(1) > workers) {
    throw UserError("--workers {}: must be at least cluster.min_workers, which is {}. Try --workers {}.",
                    workers, *config.cluster.min_workers, *config.cluster.min_workers);
  }
  config.cluster.ps = LocalNames(ps);
  config.cluster.worker = LocalNames(workers);
  if (arguments.in_process) NameForThreads(&config.cluster);
  config.net.bind.clear();
  return config;
}

// All tasks run on this machine, so that here the sum must fit.
void CheckMemory(const Config& given) {
  Config config = given;
  ResolveModelShape(PeekShape(config), &config);
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  CheckFits(ClusterNeed(config, layout, EstimateDataSize(config)));
}

int RunThreads(const Config& config, ResultFile& result) {
  Console console(LiveLineOf(config.log));
  const LogOptions log_options = LogOptionsOf(config.log, console);
  LogOptions own_options = log_options;
  own_options.directory.clear();
  Logger log("local", own_options);
  ExitHooks hooks;
  const EndOnSignal end_on_signal(result, hooks, log, console);
  TaskOptions options;
  options.started_nanos = ProcessStartWallNanos();
  options.exit_hooks = &hooks;
  result.Write(RunClusterInProcess(config, log_options, options));
  return 0;
}

Outcome RunChildren(const LocalArguments& arguments, const Config& config, const ResultMemory& memory) {
  Console console(LiveLineOf(config.log));
  Supervisor supervisor(Patience(), console, config.log.json);
  {
    // Closed here once the children have them: the port of a dead ps must not look alive.
    std::vector<ListeningSocket> sockets(config.cluster.ps.size());
    std::optional<ListeningSocket> feed;
    if (FeedsOthers(config)) feed.emplace();
    supervisor.Start(LocalCommands(arguments.config, config, sockets, feed ? &*feed : nullptr, memory.fd(),
                                   console.live()),
                     [&memory] { return memory.Begun(); });
  }
  return supervisor.Run();
}

// The ends that decide how the run ended. Of a run that is done, those are not that it went on without: they
// are only told of.
std::vector<ChildEnd> EndsThatCount(const std::vector<ChildEnd>& ends, bool done, const ErrorLines& errors) {
  std::vector<ChildEnd> counted;
  for (const ChildEnd& end : ends) {
    if (!done || !end.expendable) {
      counted.push_back(end);
    } else if (end.signal != 0 || end.exit_code != 0) {
      errors.Print(LossReport(end));
    }
  }
  return counted;
}

// The exit code of the run; says on standard error why it is not 0.
int Judge(const Outcome& outcome, bool done, const std::string& log_directory, const ErrorLines& errors) {
  if (outcome.stop_signal != 0) {
    errors.Print("stopped by " + SignalName(outcome.stop_signal));
    return 128 + outcome.stop_signal;
  }
  const std::vector<ChildEnd> ends = EndsThatCount(outcome.ends, done, errors);
  if (const std::optional<size_t> cause = FindCause(ends)) {
    errors.Print(FailureReport(ends[*cause], outcome.ends, log_directory));
    return ExitCodeOf(ends[*cause]);
  }
  const bool stuck =
      std::any_of(ends.begin(), ends.end(), [](const ChildEnd& end) { return end.ended_by_us; });
  if (!stuck) return 0;
  errors.Print("the run was over, but some tasks did not end and were killed");
  return static_cast<int>(ExitCode::kInternal);
}

std::string StatusOf(const Outcome& outcome, int exit_code, const std::string& reported) {
  if (outcome.stop_signal != 0) return "stopped";
  return exit_code == 0 ? reported : StatusOf(static_cast<ExitCode>(exit_code));
}

}  // namespace

int RunLocalCommand(const LocalArguments& arguments, ErrorLines& errors) {
  if (arguments.config.dump) {
    fmt::print("{}", DumpConfig(LoadLocal(arguments, nullptr)));
    return 0;
  }
  ResultFile result(arguments.result, errors);
  try {
    const Config config = LoadLocal(arguments, &errors.json);
    CheckMemory(config);
    if (arguments.in_process) return RunThreads(config, result);
    const ResultMemory memory;
    const Outcome outcome = RunChildren(arguments, config, memory);
    RunSummary summary = memory.Read();
    const int exit_code = Judge(outcome, summary.status == "done", config.log.dir, errors);
    summary.status = StatusOf(outcome, exit_code, summary.status);
    summary.wall_s = SecondsSinceStart();
    if (summary.first_step_nanos != 0) {
      summary.startup_s = static_cast<double>(summary.first_step_nanos - ProcessStartWallNanos()) * 1e-9;
    }
    result.Write(summary);
    return exit_code;
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  } catch (...) {
    result.WriteEnding(StatusOf(ExitCode::kInternal));
    throw;
  }
}

}  // namespace dtrain
