// How much memory this machine, or the control group that this process runs in, has at most.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct MachineMemory {
  int64_t bytes = 0;   // 0: unknown
  std::string source;  // where that stands: "MemTotal of /proc/meminfo"
};

// The least of the physical memory and the limits of the process's control group and those above it, version
// 1 or 2. `root`: the directory that holds proc/ and sys/.
MachineMemory ReadMachineMemory(const std::string& root = "/");

// Three digits or more and a unit: "812 B", "7.7 GiB".
std::string BytesText(double bytes);

}  // namespace dtrain
