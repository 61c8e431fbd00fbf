// launch.copy: this program, the libraries that it has brought along and the config on the machines' disks,
// before a task starts. By the shell and the tools that every machine has; a file is there as a whole, with
// its checksum, or not at all. Thread: any.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/log.h"
#include "cmd/launch/plan.h"

namespace dtrain {

struct CopiedFile {
  std::string from;  // here
  std::string to;    // there, below the directory
  const char* mode;  // as chmod takes it
};

struct MachineFiles {
  Machine machine;
  std::vector<CopiedFile> files;
};

// The files for each machine that gets a copy, in the order of the tasks: the config, whose path here is
// `config`, and mostly this program with the libraries that it has brought along. Nothing is read yet.
std::vector<MachineFiles> FilesToCopy(const std::vector<PlannedTask>& tasks, const std::string& config);

// For --dry-run: lines that a shell takes for comments.
std::string CopyText(const std::vector<MachineFiles>& copies);

// The same for the data files, which are not copied, and the other machines whose workers read them; their
// paths are as this machine sees them. Empty where no other machine reads any.
std::string DataText(const std::vector<PlannedTask>& tasks, const DataConfig& data);

// Copies to all machines at once; what is there already stays. A directory that had to be made goes to the
// log: it may be a mistyped one. Throws UserError with a line for each machine that failed.
void CopyToMachines(const std::vector<MachineFiles>& copies, const LaunchConfig& launch, Logger& log);

// What CopyToMachines() runs on a machine: lines for /bin/sh, which with coreutils is all that has to be
// there.

// What SumsScript() says begins with these: a login shell may print lines of its own.
constexpr char kSum[] = "@sum ";         // and the sum of a file, or "none"
constexpr char kMissing[] = "@missing";  // the directory

// Every file's sum there, a line each; none where the directory is missing, and all is to be sent.
std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files);

// Standard input becomes the file, once its sum is right. Where nothing more comes for `timeout`, nor an end,
// the link was cut, which sshd may not notice for hours: then what there is of it is removed. `writer`
// is unlike that of any other process that may send the same file.
std::string ReceiveScript(const std::string& directory, const CopiedFile& file, const std::string& sum,
                          const std::string& writer, std::chrono::seconds timeout);

}  // namespace dtrain
