#include "trainer/peer/this_host.h"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <limits>

namespace dtrain {

std::string ProcessText() { return HostName() + ", pid " + std::to_string(getpid()); }

std::string TaskAndProcess(const ClusterConfig& cluster, TaskId task) {
  return TaskNameAndAddress(cluster, task) + ", " + ProcessText();
}

std::string HostId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return HostName() + " " + boot.substr(0, 8);
}

int64_t Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : std::numeric_limits<int64_t>::max();
}

}  // namespace dtrain
