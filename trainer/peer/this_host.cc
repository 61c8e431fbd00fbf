#include "trainer/peer/this_host.h"

#include <unistd.h>

#include <fstream>

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

}  // namespace dtrain
