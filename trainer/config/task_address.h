// What messages say of where a task is, by the spec.
#pragma once

#include <string>

#include "trainer/config/config.h"

namespace dtrain {

// "10.0.0.3:9002"; "10.0.0.3" where the port is 0, since nobody connects there; empty where that leaves only
// this machine itself, as of the workers of `dtrain local`. The task is one of the cluster.
std::string KnownAddress(const ClusterConfig& cluster, TaskId task);

// "2 workers 10.0.0.3:9002 10.0.0.4:9002" of cluster.worker; "-" stands for one that has no known address,
// and nothing where none has.
std::string WorkersText(const ClusterConfig& cluster);

}  // namespace dtrain
