#include "trainer/task/machine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace dtrain {
namespace {

void Lower(int64_t bytes, const std::string& source, MachineMemory* memory) {
  if (bytes <= 0 || (memory->bytes != 0 && memory->bytes <= bytes)) return;
  *memory = {bytes, source};
}

void LowerByMemTotal(const std::string& root, MachineMemory* memory) {
  std::ifstream file(root + "proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string rest; file >> key >> kib; std::getline(file, rest)) {
    if (key == "MemTotal:") return Lower(kib * 1024, "MemTotal of /proc/meminfo", memory);
  }
}

// `path` without `root` is what a message names. A limit of "max" is none.
void LowerByFile(const std::string& root, const std::string& path, MachineMemory* memory) {
  std::ifstream file(root + path);
  std::string text;
  file >> text;
  int64_t bytes = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (result.ec == std::errc()) Lower(bytes, "/" + path, memory);
}

// The limits of `group`, such as "/user.slice/job", and of those above it. In a container the path may be one
// that only the host has: the mount's own limit then counts.
void LowerByGroup(const std::string& root, const std::string& mount, std::string group,
                  const std::string& name, MachineMemory* memory) {
  while (!group.empty()) {
    LowerByFile(root, mount + (group == "/" ? "" : group) + "/" + name, memory);
    group.erase(group == "/" ? 0 : std::max<size_t>(group.rfind('/'), 1));
  }
}

// A line is "number:controllers:group"; version 2 has no controllers.
void LowerByGroups(const std::string& root, MachineMemory* memory) {
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") LowerByGroup(root, "sys/fs/cgroup", group, "memory.max", memory);
    if (controllers.find(",memory,") != std::string::npos) {
      LowerByGroup(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", memory);
    }
  }
}

}  // namespace

MachineMemory ReadMachineMemory(const std::string& root) {
  MachineMemory memory;
  LowerByMemTotal(root, &memory);
  LowerByGroups(root, &memory);
  return memory;
}

std::string BytesText(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format(unit == 0 ? "{:.0f} {}" : "{:.1f} {}", bytes, units[unit]);
}

}  // namespace dtrain
