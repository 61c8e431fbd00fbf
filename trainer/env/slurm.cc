#include "trainer/env/assignment.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/env/host_list.h"

namespace dtrain {
namespace {

const std::vector<std::string> kNodeLists = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};
const std::vector<std::string> kTasksPerNode = {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};

// Where one rank runs.
struct Seat {
  int node;
  int local_rank;
};

[[noreturn]] void RefuseMissing(const std::string& names) {
  throw UserError(
      "{} is not set: --from slurm takes role, index and cluster from what srun sets. Start it with srun: "
      "srun --ntasks=3 dtrain --from slurm --ps 1 --config x.yaml. Or give --role and --index.",
      names);
}

int NeedNumber(const Environment& environment, const std::vector<std::string>& names) {
  const std::optional<int> number = FindNumber(environment, names);
  if (!number) RefuseMissing(names.front());
  return *number;
}

// The batch script has SLURM_PROCID=0 as well, and would wait for others that nobody has started.
void RefuseBatchScript(const Environment& environment, int size) {
  const bool batch = environment.count("ENVIRONMENT") != 0 && environment.at("ENVIRONMENT") == "BATCH";
  const bool step =
      FindVariable(environment, {"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS"}) != nullptr;
  if (!batch || step || size == 1) return;
  throw UserError(
      "SLURM_STEP_ID is not set: this is the batch script itself, which runs once, and not one of the {} "
      "processes of a step. Put srun before it: srun dtrain --from slurm ...",
      size);
}

std::vector<int> TasksPerNode(const Environment& environment, size_t nodes, int size) {
  const Environment::value_type* const variable = FindVariable(environment, kTasksPerNode);
  if (variable == nullptr) {
    if (nodes == 1) return {size};
    if (nodes == static_cast<size_t>(size)) return std::vector<int>(nodes, 1);
    RefuseMissing(kTasksPerNode.back());
  }
  std::vector<int> counts = ExpandCounts(variable->first, variable->second);
  const int sum = std::accumulate(counts.begin(), counts.end(), 0);
  if (counts.size() != nodes || sum != size) {
    throw UserError(
        "{} = {}; must have a number for each of the {} nodes, {} tasks together. Start all with one srun, "
        "without --nodes or --ntasks of its own.",
        variable->first, Shown(variable->second), nodes, size);
  }
  return counts;
}

// block fills one node after the other; cyclic deals the ranks out to the nodes in turn.
std::vector<Seat> Seats(const std::vector<int>& tasks_per_node, bool cyclic) {
  std::vector<Seat> seats;
  const int max_tasks = *std::max_element(tasks_per_node.begin(), tasks_per_node.end());
  const auto nodes = static_cast<int>(tasks_per_node.size());
  if (cyclic) {
    for (int local = 0; local < max_tasks; ++local) {
      for (int node = 0; node < nodes; ++node) {
        if (local < tasks_per_node[static_cast<size_t>(node)]) seats.push_back({node, local});
      }
    }
    return seats;
  }
  for (int node = 0; node < nodes; ++node) {
    for (int local = 0; local < tasks_per_node[static_cast<size_t>(node)]; ++local)
      seats.push_back({node, local});
  }
  return seats;
}

// "block", "cyclic:block", "block,NoPack": what follows is about processors inside a node.
bool IsCyclic(const Environment& environment) {
  const Environment::value_type* const variable = FindVariable(environment, {"SLURM_DISTRIBUTION"});
  if (variable == nullptr) return false;
  const std::string over_nodes = variable->second.substr(0, variable->second.find_first_of(":,"));
  if (over_nodes == "cyclic") return true;
  if (over_nodes == "block" || over_nodes == "unknown") return false;
  throw UserError(
      "{} = {}; must be block or cyclic: others do not tell which rank is on which node. Use srun "
      "--distribution=block.",
      variable->first, Shown(variable->second));
}

// What Slurm says of this very process must fit what has been worked out for all.
void CheckSeat(const Environment& environment, int rank, const Seat& seat, const std::string& host) {
  const std::optional<int> node = FindNumber(environment, {"SLURM_NODEID"});
  const std::optional<int> local_rank = FindNumber(environment, {"SLURM_LOCALID"});
  if (node.value_or(seat.node) != seat.node || local_rank.value_or(seat.local_rank) != seat.local_rank) {
    throw UserError(
        "rank {} is process {} of node {} (SLURM_LOCALID, SLURM_NODEID), and with the distribution of this "
        "step it "
        "would be process {} of node {}: the other ranks' hosts cannot be told. Use srun "
        "--distribution=block.",
        rank, local_rank.value_or(seat.local_rank), node.value_or(seat.node), seat.local_rank, seat.node);
  }
  const Environment::value_type* const name = FindVariable(environment, {"SLURMD_NODENAME"});
  if (name != nullptr && name->second != host) {
    throw UserError(
        "rank {} is on {} (SLURMD_NODENAME), and by the node list of this step it would be on {}: the other "
        "ranks' hosts cannot be told. A step of several components (srun ... : ...) is one such: use one.",
        rank, Shown(name->second), host);
  }
}

// The address of each rank.
std::vector<std::string> Addresses(const SchedulerOptions& options, const std::vector<std::string>& hosts,
                                   const std::vector<Seat>& seats) {
  std::vector<std::string> addresses;
  for (const Seat& seat : seats) {
    addresses.push_back(AddressOfRank(options, hosts[static_cast<size_t>(seat.node)], seat.local_rank));
  }
  return addresses;
}

}  // namespace

Assignment AssignFromSlurm(const Environment& environment, const SchedulerOptions& options,
                           const ClusterConfig& file) {
  const int rank = NeedNumber(environment, {"SLURM_PROCID"});
  const int size = NeedNumber(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  const Environment::value_type* const list = FindVariable(environment, kNodeLists);
  if (list == nullptr) RefuseMissing(kNodeLists[1]);
  if (rank >= size) {
    throw UserError("SLURM_PROCID = {}; must be below the number of tasks, which is {}. Start it with srun.",
                    rank, size);
  }
  RefuseBatchScript(environment, size);
  const std::vector<std::string> hosts = ExpandHostList(list->first, list->second);
  const std::vector<Seat> seats = Seats(TasksPerNode(environment, hosts.size(), size), IsCyclic(environment));
  const Seat& seat = seats[static_cast<size_t>(rank)];
  CheckSeat(environment, rank, seat, hosts[static_cast<size_t>(seat.node)]);
  const int ps = PsOfRanks(options, file, size, "Slurm step");
  Assignment assignment = AssignByRank(rank, ps, Addresses(options, hosts, seats));
  const Environment::value_type* const job = FindVariable(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  assignment.name =
      fmt::format("rank {} of {} of Slurm job {}", rank, size, job == nullptr ? "?" : job->second);
  return assignment;
}

}  // namespace dtrain
