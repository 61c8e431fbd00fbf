// The names of this machine and process for other tasks, and its processors.
#pragma once

#include <cstdint>
#include <string>

#include "base/names.h"
#include "trainer/config/config.h"

namespace dtrain {

std::string ProcessText();  // "host, pid 512"
// This process as `task`: "worker 0 (10.0.0.4:9002), host, pid 512".
std::string TaskAndProcess(const ClusterConfig& cluster, TaskId task);
// Identifies the machine, even among machines of one name: the name and the start of the kernel's boot id.
std::string HostId();

// The processors that this process may use; if unknown, the largest integer.
int64_t Processors();

}  // namespace dtrain
