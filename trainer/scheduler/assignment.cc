#include "trainer/scheduler/assignment.h"

#include "base/check.h"
#include "trainer/scheduler/mpi.h"
#include "trainer/scheduler/slurm.h"
#include "trainer/scheduler/tf_config.h"

namespace dtrain {

const char* SchedulerName(Scheduler scheduler) {
  switch (scheduler) {
    case Scheduler::kTfConfig:
      return "tf_config";
    case Scheduler::kSlurm:
      return "slurm";
    case Scheduler::kMpi:
      return "mpi";
  }
  return "";
}

Assignment Assign(Scheduler scheduler, const Environment& environment, const SchedulerOptions& options,
                  const ClusterConfig& file) {
  switch (scheduler) {
    case Scheduler::kTfConfig:
      return AssignFromTfConfig(environment);
    case Scheduler::kSlurm:
      return AssignFromSlurm(environment, options, file);
    case Scheduler::kMpi:
      return AssignFromMpi(environment, options, file);
  }
  DT_CHECK(false);
  return {};
}

}  // namespace dtrain
