// How much memory this machine, or the control group of this process, has and has left, and its processors.
// Thread: any; free functions. The files are those of Linux: proc_meminfo(5), cgroups(7).
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct MachineMemory {
  int64_t bytes = 0;   // 0: unknown
  std::string source;  // where that is set: "MemTotal of /proc/meminfo"
};

// The minimum of the physical memory and the limits of the process's control group and its ancestors, version
// 1 or 2. `root`: the directory with proc/ and sys/.
MachineMemory ReadMachineMemory(const std::string& root = "/");

// What is left of that now, at least 1 where it is known; pages of files that can be read again count as
// left.
MachineMemory ReadMemoryLeft(const std::string& root = "/");

// The resident memory of this process; 0: unknown.
int64_t ReadOwnMemory();

// The processors that this process may use; if unknown, the largest integer.
int64_t Processors();

// With one decimal place from KiB on: "812 B", "7.7 GiB".
std::string BytesText(double bytes);

}  // namespace dtrain
