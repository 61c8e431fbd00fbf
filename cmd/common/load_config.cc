#include "cmd/common/load_config.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"

namespace dtrain {
namespace {

constexpr int kDefaultPs = 1;
constexpr int kDefaultWorkers = 2;

int Count(const std::optional<int>& flag, const std::vector<std::string>& named, int otherwise) {
  if (flag) return *flag;
  return named.empty() ? otherwise : static_cast<int>(named.size());
}

std::string SourceOf(Scheduler scheduler) {
  return scheduler == Scheduler::kTfConfig ? "TF_CONFIG" : fmt::format("--from {}", SchedulerName(scheduler));
}

// Whether the tasks run on more than one machine, as their addresses say.
bool HasSeveralHosts(const ClusterConfig& cluster) {
  std::set<std::string> hosts;
  for (const auto* const addresses : {&cluster.ps, &cluster.worker}) {
    for (const std::string& address : *addresses) {
      const std::string host = HostOf(address);
      hosts.insert(IsLoopbackHost(host) || host.empty() ? "localhost" : host);
    }
  }
  return hosts.size() > 1;
}

bool Same(const ClusterConfig& a, const ClusterConfig& b) { return a.ps == b.ps && a.worker == b.worker; }

// --from would silently override a cluster that the user gave by --set.
void RefuseSets(Scheduler scheduler, const std::vector<std::string>& sets) {
  if (scheduler == Scheduler::kMpi) return;
  for (const std::string& set : sets) {
    const std::string key = set.substr(0, set.find('='));
    const bool addresses = key == "cluster" || key == "cluster.ps" || key == "cluster.worker";
    if (!addresses || set == key + "=null") continue;
    throw UserError("--set {}: the cluster is given by {}. Leave one of the two out.", set,
                    SourceOf(scheduler));
  }
}

}  // namespace

int ProcessExitCode(ExitCode code, const FailureConfig& failure) {
  return static_cast<int>(code == ExitCode::kPeerLost ? failure.peer_lost_exit : static_cast<int64_t>(code));
}

std::string SetAddresses(const std::string& key, const std::vector<std::string>& addresses) {
  return fmt::format("{}=[\"{}\"]", key, fmt::join(addresses, "\", \""));
}

milliseconds GraceOf(const FailureConfig& failure) {
  return milliseconds(static_cast<int64_t>(failure.grace_s * 1000));
}

void RequireRegularFile(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode))
    return;  // a missing file is reported when it is loaded
  throw UserError("--config {}: is no regular file, and each task reads it anew. Save it to a file.", path);
}

int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options) {
  fmt::print("{}", DumpConfig(LoadConfig(arguments.path, arguments.sets, options)));
  return 0;
}

LogOptions LogOptionsOf(const Config& config, Console& console, bool quiet) {
  LogOptions options;
  options.level = static_cast<LogLevel>(config.log.level);
  options.json = config.log.json;
  options.directory = config.log.dir;
  options.console = &console;
  options.quiet = quiet;
  options.show_host = HasSeveralHosts(config.cluster);
  return options;
}

LogOptions OwnLogOptions(const Config& config, Console& console, bool quiet) {
  LogOptions options = LogOptionsOf(config, console, quiet);
  options.directory.clear();
  options.show_host = false;
  return options;
}

LiveLine LiveLineOf(const LogConfig& config, bool quiet) {
  const bool shown = !config.json && !quiet;
  return shown && Console::IsTerminal() ? LiveLine::kDrawn : LiveLine::kNone;
}

LoadOptions SizedOptions(const ClusterSize& size) {
  LoadOptions options = LoadOptions::WithoutCluster();
  options.default_workers = kDefaultWorkers;
  options.workers = size.workers;
  options.default_ps = kDefaultPs;
  options.ps = size.ps;
  return options;
}

bool NeedsLocal(const ClusterSize& size, const ClusterConfig& cluster) {
  return size.ps || size.workers || cluster.ps.empty() || cluster.worker.empty();
}

std::vector<TaskId> TasksOf(const ClusterConfig& cluster) {
  std::vector<TaskId> tasks;
  for (size_t i = 0; i < cluster.ps.size(); ++i) tasks.push_back({Role::kPs, static_cast<int>(i)});
  for (size_t i = 0; i < cluster.worker.size(); ++i) tasks.push_back({Role::kWorker, static_cast<int>(i)});
  return tasks;
}

std::vector<std::string> LocalNames(int count) {
  return std::vector<std::string>(static_cast<size_t>(count), "127.0.0.1:0");
}

void MakeLocal(const ClusterSize& size, Config* config) {
  ClusterConfig& cluster = config->cluster;
  cluster.ps = LocalNames(Count(size.ps, cluster.ps, kDefaultPs));
  cluster.worker = LocalNames(Count(size.workers, cluster.worker, kDefaultWorkers));
  config->net.bind.clear();
}

void UseScheduler(const std::optional<SchedulerArguments>& from, const ConfigArguments& config,
                  LoadOptions* options, Scheduled* scheduled) {
  if (!from) return;
  RefuseSets(from->scheduler, config.sets);
  options->cluster_source = SourceOf(from->scheduler);
  options->new_cluster = [from = *from, path = config.path, scheduled](const ClusterConfig& given) {
    scheduled->assignment = Assign(from.scheduler, EnvironmentOf(environ), from.options, given);
    const ClusterConfig& cluster = scheduled->assignment->cluster;
    const bool has_one = !given.ps.empty() || !given.worker.empty();
    if (has_one && !Same(given, cluster)) {
      scheduled->replaced = fmt::format(
          "the cluster is that of {}, {} ps and {}; the one in {} ({} ps and {}) is another and is not used",
          SourceOf(from.scheduler), cluster.ps.size(),
          Plural(static_cast<int64_t>(cluster.worker.size()), "worker"), path, given.ps.size(),
          Plural(static_cast<int64_t>(given.worker.size()), "worker"));
    }
    return cluster;
  };
}

const std::string& EvaluatedDirectory(const Config& config, const Scheduled& scheduled) {
  if (!config.checkpoint.dir.empty()) return config.checkpoint.dir;
  throw UserError(
      "{}: evaluates new checkpoints, and checkpoint.dir is not set. Set it to a directory that ps 0 and "
      "this evaluator share, or leave the evaluator out.",
      scheduled.assignment->name);
}

}  // namespace dtrain
