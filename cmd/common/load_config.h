// Loading the config for a command: --config and --set, the cluster size of --ps and --workers, and the
// cluster of --from. Thread: the one that loads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/log.h"
#include "cmd/common/arguments.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/load.h"
#include "trainer/env/assignment.h"

namespace dtrain {

// Prints the effective config, for --dump-config. Returns the exit code, which is 0. Throws UserError.
int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options);

// For commands whose tasks are other processes: throws UserError if `path` can be read only once, such as a
// pipe.
void RequireRegularFile(const std::string& path);

// Returns the text of a --set: cluster.ps=["127.0.0.1:40001"]
std::string SetAddresses(const std::string& key, const std::vector<std::string>& addresses);

// Returns the exit code of a process that ends with `code`; failure.peer_lost_exit may replace it.
int ProcessExitCode(ExitCode code, const FailureConfig& failure);

// Returns failure.grace_s as a duration.
milliseconds GraceOf(const FailureConfig& failure);

// Returns the log options for tasks in this process, which share `console`. `quiet`: -q.
LogOptions LogOptionsOf(const Config& config, Console& console, bool quiet = false);

// Returns the log options for a parent of tasks, which has no log file of its own and no host to tell.
LogOptions OwnLogOptions(const Config& config, Console& console, bool quiet);

// Returns how this process shows live lines: drawn at a terminal, unless the log is JSON or -q was given.
LiveLine LiveLineOf(const LogConfig& config, bool quiet);

// Returns the LoadConfig() options for a cluster that `dtrain local` makes, which check and plan are about
// too. Its size is that of --ps and --workers, else the file's, else 1 ps and 2 workers. The file need not
// name a cluster, and rules on the number of workers use that size.
LoadOptions SizedOptions(const ClusterSize& size);

// Whether `dtrain local` has to make the cluster: the flags ask for one, or the file has none.
bool NeedsLocal(const ClusterSize& size, const ClusterConfig& cluster);

// Returns every task of the cluster: the ps, then the workers.
std::vector<TaskId> TasksOf(const ClusterConfig& cluster);

// Returns addresses for workers. Nobody connects to them; they only serve as names.
std::vector<std::string> LocalNames(int count);

// Replaces the cluster of `config` by one of that size on this machine.
void MakeLocal(const ClusterSize& size, Config* config);

// Scheduled: the cluster of --from, and the task that this process is.
struct Scheduled {
  std::optional<Assignment> assignment;  // set during loading
  std::string replaced;                  // a log line about the file's cluster if it is replaced; else empty
};

// Makes loading with `options` fill `scheduled`, which must outlive them. Does nothing without --from.
// Loading throws the UserErrors of Assign().
void UseScheduler(const std::optional<SchedulerArguments>& from, const ConfigArguments& config,
                  LoadOptions* options, Scheduled* scheduled);

// Returns where an evaluator finds the checkpoints. Throws UserError if the run writes none.
const std::string& EvaluatedDirectory(const Config& config, const Scheduled& scheduled);

}  // namespace dtrain
