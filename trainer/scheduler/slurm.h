// --from slurm: one task of the cluster in each process of a step (`srun dtrain --from slurm --ps 1 ...`),
// with hosts and numbers of the SLURM_ variables that srun sets.
#pragma once

#include "trainer/scheduler/assignment.h"

namespace dtrain {

// Throws UserError with the variable and the remedy.
Assignment AssignFromSlurm(const Environment& environment, const SchedulerOptions& options,
                           const ClusterConfig& file);

}  // namespace dtrain
