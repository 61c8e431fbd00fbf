// The machine that this process runs on, as other tasks are told: its name, and what follows.
#pragma once

#include <cstdint>
#include <string>

#include "base/names.h"
#include "trainer/config/config.h"

namespace dtrain {

std::string ProcessText();  // "host, pid 512"
// "worker 0 (10.0.0.4:9002), host, pid 512": this process, which is that task.
std::string TaskAndProcess(const ClusterConfig& cluster, TaskId task);
// Tells machines apart, also where they have the same name: the name and the start of the kernel's boot id.
std::string HostId();

// Processors that this process may use; the largest number where nobody knows.
int64_t Processors();

}  // namespace dtrain
