// Assignment: the cluster and this process's task in it, from a scheduler's environment (--from). Thread:
// any; free functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/cluster_config.h"

namespace dtrain {

// Environment: a process's environment as a map, and functions that read it. Thread: any.

using Environment = std::map<std::string, std::string>;

// Returns the environment of "NAME=value" texts up to a null pointer, as in environ.
Environment EnvironmentOf(const char* const* variables);

// Returns the first of `names` that is set and not empty, or null.
const Environment::value_type* FindVariable(const Environment& environment,
                                            const std::vector<std::string>& names);

// Returns the same as an integer >= 0; unset if none of `names` is set. Throws UserError with the variable.
std::optional<int> FindNumber(const Environment& environment, const std::vector<std::string>& names);

// Assignment: the cluster and this process's task in it. Plain functions on plain data: nothing here reads
// the environment itself. Thread: any.
enum class Scheduler { kTfConfig, kSlurm, kMpi };
// Returns the name for --from: "slurm".
const char* SchedulerName(Scheduler scheduler);

struct SchedulerOptions {
  std::optional<int> ps;         // --ps: ranks 0 to ps - 1 are ps; unset: as in the file's cluster
  std::optional<int> base_port;  // --base-port: the port of the first process on each host
};
constexpr int kDefaultBasePort = 9000;

struct Assignment {
  std::optional<TaskId> task;  // unset: an evaluator, which evaluates each new checkpoint
  ClusterConfig cluster;       // ps and worker, with valid addresses
  std::string name;            // this process in the scheduler's terms: "rank 2 of 3 of Slurm job 17"
};

// Returns the assignment. `file` is the cluster of the config: TF_CONFIG and Slurm replace it, mpi takes its
// addresses by rank. Throws UserError, with the variable and the remedy, if the environment is incomplete: a
// process never guesses, and never runs alone because a variable is missing.
Assignment Assign(Scheduler scheduler, const Environment& environment, const SchedulerOptions& options,
                  const ClusterConfig& file);

// Assign() for one scheduler each: tf_config.cc, slurm.cc, mpi.cc.

// --from tf_config: TensorFlow's description of a cluster, which Kubeflow's TFJob gives to each of its pods.
//   {"cluster": {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222"]}, "task": {"type": "ps",
//   "index": 0}}
// chief 0 (or master 0) is worker 0 and worker i is worker i + 1; without a chief worker i is worker i. A
// job's tasks are a list, or {"0": "a:2222", ...}; gaps in these numbers are closed.
Assignment AssignFromTfConfig(const Environment& environment);

// --from slurm: each process of a step (`srun dtrain --from slurm --ps 1 ...`) is one task of the cluster;
// hosts and numbers come from the SLURM_ variables that srun sets.
Assignment AssignFromSlurm(const Environment& environment, const SchedulerOptions& options,
                           const ClusterConfig& file);

// Slurm's short forms: "node[006,011-013],login" for hosts and "2(x3),1" for a number of each.

// Returns the hosts in order. Numbers keep their leading zeros. A name may have several brackets; the last
// one varies fastest. Throws UserError, which names `variable`.
std::vector<std::string> ExpandHostList(const std::string& variable, const std::string& text);

// Returns {2, 2, 2, 1} for "2(x3),1". Throws UserError, which names `variable`.
std::vector<int> ExpandCounts(const std::string& variable, const std::string& text);

// --from mpi: each process that mpirun starts (`mpirun -np 3 dtrain --from mpi --ps 1 ...`) is one task of
// the cluster. MPI itself is not used, only the ranks that Open MPI, Hydra (MPICH, Intel MPI) and PMIx leave
// in the environment. The file's cluster has the addresses by rank, first its ps, then its workers; without
// one, all ranks must be on this machine.
Assignment AssignFromMpi(const Environment& environment, const SchedulerOptions& options,
                         const ClusterConfig& file);

// Throws UserError if the data is standard input and this process is one of several ranks of mpirun, which
// gives its input to rank 0, a ps. Beside --from mpi (`from_mpi`) ranks of srun are not meant: each of them
// gets the input.
void RefuseInputOfMpi(const Environment& environment, bool from_mpi, const DataConfig& data);

// Ranks: what Slurm and mpi have in common. Processes are numbered; the first ones are ps. Each has the port
// base-port + its number on its host.

constexpr int64_t kMaxRanks = 65536;  // also of the hosts in a list

// Returns how many of `size` ranks are ps. `what` is "Slurm step" or the like, for messages. Throws UserError
// if that is unknown, if no worker would be left, or if there are more than kMaxRanks.
int PsOfRanks(const SchedulerOptions& options, const ClusterConfig& file, int size, const std::string& what);

// Returns the address of a process by its number on its host: "host:9001" for the second. Throws UserError if
// there is no such port.
std::string AddressOfRank(const SchedulerOptions& options, const std::string& host, int local_rank);

// Makes ranks 0 to ps - 1 ps and the others workers. `addresses` has one for each rank.
Assignment AssignByRank(int rank, int ps, const std::vector<std::string>& addresses);

}  // namespace dtrain
