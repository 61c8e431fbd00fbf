// Assignment: which task of which cluster this process is, as a scheduler's environment has it (--from).
// Plain functions on plain data: nothing here reads the environment itself. Thread: any.
#pragma once

#include <optional>
#include <string>

#include "trainer/config/config.h"
#include "trainer/scheduler/environment.h"

namespace dtrain {

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

}  // namespace dtrain
