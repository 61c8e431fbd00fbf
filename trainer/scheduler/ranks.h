// What Slurm and mpi have in common: processes are numbered, the first of them are ps, and each has the port
// base-port + its number on its host. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "trainer/scheduler/assignment.h"

namespace dtrain {

// How many of `size` ranks are ps. `what`: "Slurm step", for messages. Throws UserError where nobody has said
// so, or no worker would be left.
int PsOfRanks(const SchedulerOptions& options, const ClusterConfig& file, int size, const std::string& what);

// "host:9001", of the process that is the second of its host. Throws UserError where there is no such port.
std::string AddressOfRank(const SchedulerOptions& options, const std::string& host, int local_rank);

// Ranks 0 to ps - 1 are ps, the others workers. `addresses`: of each rank.
Assignment AssignByRank(int rank, int ps, const std::vector<std::string>& addresses);

}  // namespace dtrain
