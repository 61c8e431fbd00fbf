// launch.copy: copies this program, its bundled libraries and the config to the machines' disks before a task
// starts. It uses only a shell and coreutils there. A file appears whole, with its checksum verified, or not
// at all. Thread: any.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "base/log.h"
#include "cmd/launch/plan.h"
#include "cmd/launch/ssh.h"

namespace dtrain {

struct CopiedFile {
  std::string from;  // the path on this machine
  std::string to;    // the path on the other machine, relative to the directory
  const char* mode;  // for chmod
};

struct MachineFiles {
  Machine machine;
  std::vector<CopiedFile> files;
};

// Returns the files for each machine that gets copies, in the order of the tasks: the config, whose path here
// is `config`, and usually this program with its bundled libraries. Reads no file yet.
std::vector<MachineFiles> FilesToCopy(const std::vector<PlannedTask>& tasks, const std::string& config);

// Returns the copies as shell comments, for --dry-run.
std::string CopyText(const std::vector<MachineFiles>& copies);

// The same for the data files, which are not copied, with the machines whose workers read them. Paths are as
// on this machine. Empty if no other machine reads any.
std::string DataText(const std::vector<PlannedTask>& tasks, const DataConfig& data);

// Copies to all machines in parallel; files that are there already are kept. Logs each directory that it
// makes, because it may be a mistyped one. Throws UserError with a line for each machine that failed.
void CopyToMachines(const std::vector<MachineFiles>& copies, const LaunchConfig& launch, Logger& log);

// ScriptOptions: of RunScript().
struct ScriptOptions {
  std::vector<std::string> before = {};     // words before the command on this machine
  const std::atomic<bool>* stop = nullptr;  // true: no longer wanted; null: never
};

// Runs a script of /bin/sh on a machine with the file `input`, from its begin, as standard input. Tries again
// if the machine refuses the connection.
CommandResult RunScript(const Machine& machine, const std::string& script, const LaunchConfig& launch,
                        int input, const ScriptOptions& options = {});

// The scripts that CopyToMachines() runs there with /bin/sh. They need nothing but coreutils.

// The words that begin the output lines of SumsScript(); a login shell may print lines of its own.
constexpr char kSum[] = "@sum ";         // followed by the checksum of a file, or "none"
constexpr char kMissing[] = "@missing";  // the directory does not exist

// Prints the checksum of every file, one per line. Prints kMissing if the directory does not exist; then
// every file is sent.
std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files);

// Writes standard input to the file if its checksum is right. If input stops for `timeout` without an end,
// the link was cut, which sshd may not notice for hours; then the partial file is removed. `writer` must be
// unique among all processes that may send the same file.
std::string ReceiveScript(const std::string& directory, const CopiedFile& file, const std::string& sum,
                          const std::string& writer, std::chrono::seconds timeout);

}  // namespace dtrain
