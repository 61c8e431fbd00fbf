// The config that a command works with: --config and --set, the cluster size of --ps and --workers, and the
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
#include "trainer/config/config.h"
#include "trainer/config/load.h"
#include "trainer/env/assignment.h"

namespace dtrain {

// --dump-config: prints the effective config. Returns the exit code, 0; throws UserError.
int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options);

// For commands whose tasks are other processes: UserError where `path` can be read only once, as a pipe.
void RequireRegularFile(const std::string& path);

// The text of a --set: cluster.ps=["127.0.0.1:40001"]
std::string SetAddresses(const std::string& key, const std::vector<std::string>& addresses);

// What a process that ends with `code` exits with: failure.peer_lost_exit has a say.
int ProcessExitCode(ExitCode code, const FailureConfig& failure);

// failure.grace_s
milliseconds GraceOf(const FailureConfig& failure);

// The log of tasks in this process, which share `console`.
LogOptions LogOptionsOf(const LogConfig& config, Console& console);

// The log of a parent of tasks, which keeps no file of its own.
LogOptions OwnLogOptions(const LogConfig& config, Console& console);

// How this process shows live lines: drawn at a terminal, unless the log is for machines or has no progress
// in it.
LiveLine LiveLineOf(const LogConfig& config);

// The cluster that `dtrain local` makes of a file, and that dtrain check and plan are about: its size is that
// of
// --ps and --workers, else the file's, else 1 ps and 2 workers. These are the options of LoadConfig() for it:
// the file may leave the cluster out, and rules on the number of workers are about that size.
LoadOptions SizedOptions(const ClusterSize& size);

// Whether the run has a cluster that dtrain local has to make: by the flags, or since the file has none.
bool NeedsLocal(const ClusterSize& size, const ClusterConfig& cluster);

// Every task of the cluster: the ps, then the workers.
std::vector<TaskId> TasksOf(const ClusterConfig& cluster);

// Addresses that nobody connects to, for workers: only names.
std::vector<std::string> LocalNames(int count);

// Gives the run a cluster of that size on this machine, whatever the file says of addresses.
void MakeLocal(const ClusterSize& size, Config* config);

// The cluster of --from, and which task of it this process is.
struct Scheduled {
  std::optional<Assignment> assignment;  // as soon as loading has asked for it
  std::string replaced;  // a line about the file's cluster, where another one is used; empty: none is
};

// Loading with `options` then fills `scheduled`, which must live as long as they do. Does nothing without
// --from. Loading throws the UserErrors of Assign().
void UseScheduler(const std::optional<SchedulerArguments>& from, const ConfigArguments& config,
                  LoadOptions* options, Scheduled* scheduled);

// Where an evaluator finds the checkpoints. Throws UserError where none are written.
const std::string& EvaluatedDirectory(const Config& config, const Scheduled& scheduled);

}  // namespace dtrain
