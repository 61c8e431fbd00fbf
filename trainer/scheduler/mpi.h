// --from mpi: one task of the cluster in each process that mpirun has started
// (`mpirun -np 3 dtrain --from mpi --ps 1 ...`). Of MPI only the numbers of the ranks are used, which Open
// MPI, Hydra (MPICH, Intel MPI) and PMIx leave in the environment.
#pragma once

#include "trainer/scheduler/assignment.h"

namespace dtrain {

// Addresses by rank are those of the file's cluster, first its ps, then its workers. Without one all ranks
// must be on this machine. Throws UserError with the variable and the remedy.
Assignment AssignFromMpi(const Environment& environment, const SchedulerOptions& options,
                         const ClusterConfig& file);

}  // namespace dtrain
