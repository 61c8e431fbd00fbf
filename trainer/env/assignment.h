// The cluster and this process's task in it, as a scheduler's environment has them (--from). Thread: any;
// free functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

// A process's environment as a map, and reading numbers out of it: what the schedulers have told this
// process. Thread: any.

using Environment = std::map<std::string, std::string>;

// "NAME=value" texts up to a null pointer, as in environ.
Environment EnvironmentOf(const char* const* variables);

// The first of `names` that is set and not empty, or null.
const Environment::value_type* FindVariable(const Environment& environment,
                                            const std::vector<std::string>& names);

// The same as a whole number >= 0; unset where none of `names` is set. Throws UserError naming the variable.
std::optional<int> FindNumber(const Environment& environment, const std::vector<std::string>& names);

// Assignment: the cluster and this process's task in it, as a scheduler's environment has them (--from).
// Plain functions on plain data: nothing here reads the environment itself. Thread: any.
enum class Scheduler { kTfConfig, kSlurm, kMpi };
// "slurm", as --from has it.
const char* SchedulerName(Scheduler scheduler);

struct SchedulerOptions {
  std::optional<int> ps;         // --ps: ranks 0 to ps - 1 are ps; unset: as many as the file's cluster has
  std::optional<int> base_port;  // --base-port; the first process of each host has this port
};
constexpr int kDefaultBasePort = 9000;

struct Assignment {
  std::optional<TaskId> task;  // unset: an evaluator, which evaluates each new checkpoint
  ClusterConfig cluster;       // ps and worker, good addresses
  std::string name;            // as the scheduler calls this process: "rank 2 of 3 of Slurm job 17"
};

// `file` is the cluster of the config: TF_CONFIG and Slurm take its place, mpi takes its addresses by rank.
// Throws UserError, with the variable and the remedy, where the environment does not tell all: a process
// never guesses, and never runs alone because a variable is missing.
Assignment Assign(Scheduler scheduler, const Environment& environment, const SchedulerOptions& options,
                  const ClusterConfig& file);

// Assign() for one scheduler each: tf_config.cc, slurm.cc, mpi.cc.

// --from tf_config: TensorFlow's description of a cluster, which Kubeflow's TFJob gives to each of its pods.
//   {"cluster": {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222"]}, "task": {"type": "ps",
//   "index": 0}}
// chief 0 (or master 0) is worker 0 and worker i is worker i + 1; without a chief worker i is worker i.
Assignment AssignFromTfConfig(const Environment& environment);

// --from slurm: one task of the cluster in each process of a step (`srun dtrain --from slurm --ps 1 ...`),
// with hosts and numbers from the SLURM_ variables that srun sets.
Assignment AssignFromSlurm(const Environment& environment, const SchedulerOptions& options,
                           const ClusterConfig& file);

// Slurm's short forms: "node[006,011-013],login" for hosts and "2(x3),1" for a number of each.

// The hosts in their order. Numbers keep their leading zeros; a name may have several brackets, of which the
// last one runs fastest. Throws UserError, which names `variable`.
std::vector<std::string> ExpandHostList(const std::string& variable, const std::string& text);

// {2, 2, 2, 1}. Throws UserError, which names `variable`.
std::vector<int> ExpandCounts(const std::string& variable, const std::string& text);

// --from mpi: one task of the cluster in each process that mpirun has started
// (`mpirun -np 3 dtrain --from mpi --ps 1 ...`). MPI itself is not used, only the numbers of the ranks that
// Open MPI, Hydra (MPICH, Intel MPI) and PMIx leave in the environment. The file's cluster has the addresses
// by rank, first its ps, then its workers; without one all ranks must be on this machine.
Assignment AssignFromMpi(const Environment& environment, const SchedulerOptions& options,
                         const ClusterConfig& file);

// Ranks: what Slurm and mpi have in common. Processes are numbered, the first of them are ps, and each has
// the port base-port + its number on its host.

// How many of `size` ranks are ps. `what`: "Slurm step", for messages. Throws UserError where nobody has said
// so, or no worker would be left.
int PsOfRanks(const SchedulerOptions& options, const ClusterConfig& file, int size, const std::string& what);

// The address of a process by its number on its host: "host:9001" for the second. Throws UserError where
// there is no such port.
std::string AddressOfRank(const SchedulerOptions& options, const std::string& host, int local_rank);

// Ranks 0 to ps - 1 are ps, the others workers. `addresses`: of each rank.
Assignment AssignByRank(int rank, int ps, const std::vector<std::string>& addresses);

}  // namespace dtrain
