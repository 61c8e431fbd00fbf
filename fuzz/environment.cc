// The environment of schedulers: TF_CONFIG, Slurm, MPI. A process finds its place or says what is wrong.
#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/env/assignment.h"

namespace dtrain::fuzz {
namespace {

// Variables that one of the schedulers reads.
const char* const kNames[] = {"TF_CONFIG",
                              "SLURM_PROCID",
                              "SLURM_STEP_NUM_TASKS",
                              "SLURM_STEP_NODELIST",
                              "SLURM_JOB_NODELIST",
                              "SLURM_STEP_TASKS_PER_NODE",
                              "SLURM_DISTRIBUTION",
                              "SLURM_NODEID",
                              "SLURM_LOCALID",
                              "SLURMD_NODENAME",
                              "SLURM_JOB_ID",
                              "OMPI_COMM_WORLD_RANK",
                              "OMPI_COMM_WORLD_SIZE",
                              "OMPI_COMM_WORLD_LOCAL_SIZE",
                              "PMI_RANK",
                              "PMI_SIZE",
                              "MPI_LOCALNRANKS",
                              "PMIX_RANK",
                              "ENVIRONMENT"};

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  const auto scheduler = static_cast<Scheduler>(input.Below(3));
  SchedulerOptions options;
  if (input.Flag()) options.ps = static_cast<int>(input.Below(8));
  if (input.Flag()) options.base_port = static_cast<int>(input.Number() % 70000);
  ClusterConfig file;
  if (input.Flag()) {
    file.ps = {"p:1"};
    file.worker = {"a:1", "b:1"};
  }
  Environment environment;
  if (scheduler == Scheduler::kTfConfig) {
    environment["TF_CONFIG"] = input.Rest();
  }
  while (!input.empty()) {
    const std::string name = kNames[input.Below(std::size(kNames))];
    environment[name] = input.Text(255);
  }
  try {
    const Assignment assignment = Assign(scheduler, environment, options, file);
    const size_t tasks = assignment.cluster.ps.size() + assignment.cluster.worker.size();
    Require(tasks > 0 && tasks <= kMaxRanks + 1, "a cluster has a bounded number of tasks");
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("environment", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
