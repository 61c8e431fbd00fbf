#include "trainer/env/assignment.h"

#include "base/check.h"
#include "base/error.h"
#include "trainer/config/address_rule.h"

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

namespace {

constexpr int kLastPort = 65535;

}  // namespace

int PsOfRanks(const SchedulerOptions& options, const ClusterConfig& file, int size, const std::string& what) {
  if (!options.ps && file.ps.empty()) {
    throw UserError("--ps is missing: how many of the {} ranks of this {} are parameter servers? Add --ps 1.",
                    size, what);
  }
  const int ps = options.ps.value_or(static_cast<int>(file.ps.size()));
  if (ps >= size) {
    const std::string from =
        options.ps ? fmt::format("--ps {}", ps) : fmt::format("cluster.ps has {} addresses", ps);
    throw UserError("{}: this {} has {} {}, which leaves no worker. Start at least {}{}.", from, what, size,
                    size == 1 ? "rank" : "ranks", ps + 1, ps > 1 ? ", or use fewer ps" : "");
  }
  return ps;
}

std::string AddressOfRank(const SchedulerOptions& options, const std::string& host, int local_rank) {
  const int base = options.base_port.value_or(kDefaultBasePort);
  const int port = base + local_rank;
  if (base < 1 || port > kLastPort) {
    throw UserError(
        "--base-port {}: ports are 1 to {}, and process {} of {} would have {}. Try --base-port {}.", base,
        kLastPort, local_rank, host, port, kDefaultBasePort);
  }
  const bool ipv6 = host.find(':') != std::string::npos;
  const std::string address = fmt::format("{}{}{}:{}", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
  const std::string problem = AddressProblem(address);
  if (!problem.empty()) throw UserError("\"{}\": {}", address, problem);
  return address;
}

Assignment AssignByRank(int rank, int ps, const std::vector<std::string>& addresses) {
  DT_CHECK(0 <= rank && rank < static_cast<int>(addresses.size()) && ps < static_cast<int>(addresses.size()),
           rank, ps);
  Assignment assignment;
  assignment.cluster.ps.assign(addresses.begin(), addresses.begin() + ps);
  assignment.cluster.worker.assign(addresses.begin() + ps, addresses.end());
  assignment.task = rank < ps ? TaskId{Role::kPs, rank} : TaskId{Role::kWorker, rank - ps};
  return assignment;
}

}  // namespace dtrain
