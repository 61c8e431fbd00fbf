// The names of this machine and process for other tasks.
#pragma once

#include <string>

#include "base/names.h"
#include "trainer/config/cluster_config.h"

namespace dtrain {

std::string ProcessText();  // "host, pid 512"
// This process as `task`: "worker 0 (10.0.0.4:9002), host, pid 512".
std::string TaskAndProcess(const ClusterConfig& cluster, TaskId task);
// Identifies the machine, even among machines of one name: the name and the start of the kernel's boot id.
std::string HostId();

}  // namespace dtrain
