#include "cmd/local_command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/signal_name.h"
#include "cmd/end_on_signal.h"
#include "cmd/load_config.h"
#include "cmd/local_cluster.h"
#include "cmd/local_verdict.h"
#include "cmd/result_file.h"
#include "cmd/supervisor.h"
#include "trainer/config/dump.h"
#include "trainer/data/source.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// A task whose failure.grace_s has passed has still to write its result.
constexpr milliseconds kAfterGrace{5000};

// Where ps 0 leaves the run's result: memory without a name, so that nothing lies about at any ending.
class ResultMemory {
 public:
  ResultMemory() : fd_(memfd_create("dtrain-result", MFD_CLOEXEC)) { DT_CHECK(fd_ >= 0, errno); }
  ~ResultMemory() { close(fd_); }
  ResultMemory(const ResultMemory&) = delete;
  ResultMemory& operator=(const ResultMemory&) = delete;
  int fd() const { return fd_; }

  // ps 0 writes first when the run begins, and again when that has ended.
  RunStage Stage() const {
    if (Size() == 0) return RunStage::kStarting;
    const std::string status = Read().status;
    return status == "done" || status == "already_done" ? RunStage::kDone : RunStage::kRunning;
  }

  // What ps 0 has written; a summary without anything when it has not got that far.
  RunSummary Read() const {
    std::string text(Size(), '\0');
    RunSummary summary;
    const ssize_t got = pread(fd_, text.data(), text.size(), 0);
    if (got == static_cast<ssize_t>(text.size())) FromWireJson(text, &summary);
    return summary;
  }

 private:
  // Without moving the offset, which ps 0 shares.
  size_t Size() const {
    struct stat found {};
    DT_CHECK(fstat(fd_, &found) == 0, errno);
    return static_cast<size_t>(found.st_size);
  }

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

int RunThreads(const Config& config, const ErrorLines& errors, ResultFile& result) {
  Console console(LiveLineOf(config.log));
  const LogOptions log_options = LogOptionsOf(config.log, console);
  LogOptions own_options = log_options;
  own_options.directory.clear();
  Logger log("local", own_options);
  ExitHooks hooks;
  StopRequest stop;
  const EndOnSignal end_on_signal(GraceOf(config.failure), stop, result, hooks, log, console);
  TaskOptions options;
  options.started_nanos = ProcessStartWallNanos();
  options.exit_hooks = &hooks;
  options.stop = &stop;
  try {
    result.Write(RunClusterInProcess(config, log_options, options));
    return 0;
  } catch (const RunStopped& stopped) {
    console.End();
    errors.Print(FailureText(stopped));
    result.Write(stopped.summary());
    return ProcessExitCode(stopped.code(), config.failure);
  } catch (const Failure& failure) {
    console.End();
    errors.Print(FailureText(failure));
    result.WriteEnding(StatusOf(failure.code(), stop));
    return ProcessExitCode(failure.code(), config.failure);
  }
}

RestartRules RulesOf(const FailureConfig& failure) {
  RestartRules rules;
  rules.most = failure.restarts;
  rules.peer_lost_exit = static_cast<int>(failure.peer_lost_exit);
  rules.deaf = milliseconds(static_cast<int64_t>(failure.detect_s * 1000));
  return rules;
}

Outcome RunChildren(const LocalArguments& arguments, const Config& config, const ResultMemory& memory) {
  Console console(LiveLineOf(config.log));
  Patience patience;
  patience.after_stop = GraceOf(config.failure) + kAfterGrace;
  Supervisor supervisor(patience, RulesOf(config.failure), console, config.log.json);
  std::optional<SharedWithChildren> shared(std::in_place);
  shared->ps = std::vector<ListeningSocket>(config.cluster.ps.size());
  if (FeedsOthers(config)) shared->feed.emplace();
  shared->result_fd = memory.fd();
  shared->lost_fd = supervisor.lost_fd();
  supervisor.Start(LocalCommands(arguments.config, config, *shared, console.live()),
                   [&memory] { return memory.Stage(); });
  // The port of a dead ps must not look alive, unless another takes its place.
  if (config.failure.restarts == 0) shared.reset();
  return supervisor.Run();
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
    if (arguments.in_process) return RunThreads(config, errors, result);
    const ResultMemory memory;
    const Outcome outcome = RunChildren(arguments, config, memory);
    return Conclude(config, outcome, memory.Read(), errors, result);
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  } catch (...) {
    result.WriteEnding(StatusOf(ExitCode::kInternal));
    throw;
  }
}

}  // namespace dtrain
