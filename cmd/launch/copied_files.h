// Which files launch.copy puts where: plain data, from the plan. Nothing is read yet.
#pragma once

#include <string>
#include <vector>

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

// Of each machine that gets a copy, once, in the order of the tasks: the config, whose path here is `config`,
// and mostly this program with the libraries that it has brought along.
std::vector<MachineFiles> FilesToCopy(const std::vector<PlannedTask>& tasks, const std::string& config);

// For --dry-run: lines that a shell takes for comments.
std::string CopyText(const std::vector<MachineFiles>& copies);

// The same of the data files, which are not copied, and the other machines whose workers read them; their
// paths are as this machine sees them. Empty where nothing but this machine does.
std::string DataText(const std::vector<PlannedTask>& tasks, const DataConfig& data);

}  // namespace dtrain
