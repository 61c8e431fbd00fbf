// What the commands have in common about --config and --set.
#pragma once

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/log.h"
#include "cmd/arguments.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"

namespace dtrain {

// What a process that ends with `code` exits with: failure.peer_lost_exit has a say.
int ProcessExitCode(ExitCode code, const FailureConfig& failure);

// For --set: cluster.ps=["127.0.0.1:40001"]
std::string SetAddresses(const std::string& key, const std::vector<std::string>& addresses);

// failure.grace_s
milliseconds GraceOf(const FailureConfig& failure);

// For commands whose tasks are other processes: UserError where `path` can be read only once, as a pipe.
void RequireRegularFile(const std::string& path);

// --dump-config: prints the effective config. Returns the exit code, 0; throws UserError.
int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options);

// Of tasks of this process, which share `console`.
LogOptions LogOptionsOf(const LogConfig& config, Console& console);

// Of the parent of tasks, which keeps no file of its own.
LogOptions OwnLogOptions(const LogConfig& config, Console& console);

// What becomes of live lines of this process: at a terminal they are drawn, unless the log is for machines or
// has no progress in it.
LiveLine LiveLineOf(const LogConfig& config);

}  // namespace dtrain
