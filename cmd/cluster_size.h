// The size of the cluster that `dtrain local` makes of a file: as --ps and --workers say, else as the file,
// else of 1 ps and 2 workers. dtrain check and plan are about the same one. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cmd/arguments.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"

namespace dtrain {

// For LoadConfig(): the cluster may be left out, and rules on the number of workers are about that size.
LoadOptions SizedOptions(const ClusterSize& size);

// Whether the run is of a cluster that dtrain local has to make: by the flags, or since the file has none.
bool NeedsLocal(const ClusterSize& size, const ClusterConfig& cluster);

// Addresses that nobody connects to, for workers: only names.
std::vector<std::string> LocalNames(int count);

// Makes the run one of that size on this machine, whatever the file says of addresses.
void MakeLocal(const ClusterSize& size, Config* config);

}  // namespace dtrain
