#include "base/machine_memory.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

namespace dtrain {
namespace {

void Lower(int64_t bytes, const std::string& source, MachineMemory* memory) {
  if (bytes <= 0 || (memory->bytes != 0 && memory->bytes <= bytes)) return;
  *memory = {bytes, source};
}

std::string Named(const std::string& source, int64_t swap) {
  return swap > 0 ? source + ", and swap" : source;
}

// The number behind a word of a file with one word and number a line; 0: not there.
int64_t NumberOf(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string key;
  int64_t number = 0;
  for (std::string rest; file >> key >> number; std::getline(file, rest)) {
    if (key == wanted) return number;
  }
  return 0;
}

// A value of /proc/meminfo in bytes; 0: not there.
int64_t MemInfo(const std::string& root, const std::string& wanted) {
  return NumberOf(root + "proc/meminfo", wanted) * 1024;
}

// The number in a file. "max" is no limit.
std::optional<int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  file >> text;
  int64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  return number;
}

// The files of a control group, in one of its versions.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* inactive_files;  // in memory.stat
  const char* active_files;
};
constexpr GroupFiles kVersion1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file", "total_active_file"};
constexpr GroupFiles kVersion2 = {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file",
                                  "active_file"};

// Calls `visit(files, directory below root)` for the process's control group, such as "/user.slice/job", and
// its ancestors. In a container the path may exist only on the host; then the mount's own limit counts.
using VisitGroup = std::function<void(const GroupFiles& files, const std::string& directory)>;
void VisitAncestors(const GroupFiles& files, std::string group, const VisitGroup& visit) {
  while (!group.empty()) {
    visit(files, files.mount + (group == "/" ? "" : group) + "/");
    group.erase(group == "/" ? 0 : std::max<size_t>(group.rfind('/'), 1));
  }
}

// A line is "number:controllers:group"; version 2 has no controllers.
void VisitGroups(const std::string& root, const VisitGroup& visit) {
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") VisitAncestors(kVersion2, group, visit);
    if (controllers.find(",memory,") != std::string::npos) VisitAncestors(kVersion1, group, visit);
  }
}

}  // namespace

// A group's limits do not count swap.
MachineMemory ReadMachineMemory(const std::string& root) {
  MachineMemory memory;
  const int64_t swap = MemInfo(root, "SwapTotal:"), total = MemInfo(root, "MemTotal:");
  if (total > 0) Lower(total + swap, Named("MemTotal of /proc/meminfo", swap), &memory);
  VisitGroups(root, [&](const GroupFiles& files, const std::string& directory) {
    const std::string path = directory + files.limit;
    const std::optional<int64_t> limit = NumberIn(root + path);
    if (limit && *limit < INT64_MAX - swap) Lower(*limit + swap, Named("/" + path, swap), &memory);
  });
  return memory;
}

// A group may be allowed no swap, so it counts for the machine alone.
MachineMemory ReadMemoryLeft(const std::string& root) {
  MachineMemory memory;
  const int64_t swap = MemInfo(root, "SwapFree:"), available = MemInfo(root, "MemAvailable:");
  if (available > 0) Lower(available + swap, Named("MemAvailable of /proc/meminfo", swap), &memory);
  VisitGroups(root, [&](const GroupFiles& files, const std::string& directory) {
    const std::optional<int64_t> limit = NumberIn(root + directory + files.limit);
    const std::optional<int64_t> usage = NumberIn(root + directory + files.usage);
    if (!limit || !usage) return;
    const std::string stat = root + directory + "memory.stat";
    const int64_t files_bytes = NumberOf(stat, files.inactive_files) + NumberOf(stat, files.active_files);
    Lower(std::max<int64_t>(1, *limit - *usage + std::min(files_bytes, *usage)),
          "/" + directory + files.limit, &memory);
  });
  return memory;
}

int64_t ReadOwnMemory() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : std::numeric_limits<int64_t>::max();
}

std::string BytesText(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format(unit == 0 ? "{:.0f} {}" : "{:.1f} {}", bytes, units[unit]);
}

}  // namespace dtrain
