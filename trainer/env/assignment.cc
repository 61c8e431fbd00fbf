#include "trainer/env/assignment.h"

#include <charconv>

#include "base/check.h"
#include "base/error.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/user_text.h"

namespace dtrain {

Environment EnvironmentOf(const char* const* variables) {
  Environment environment;
  for (; *variables != nullptr; ++variables) {
    const std::string text = *variables;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

const Environment::value_type* FindVariable(const Environment& environment,
                                            const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return &*found;
  }
  return nullptr;
}

std::optional<int> FindNumber(const Environment& environment, const std::vector<std::string>& names) {
  const Environment::value_type* const variable = FindVariable(environment, names);
  if (variable == nullptr) return std::nullopt;
  const std::string& text = variable->second;
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) {
    throw UserError("{} = {}; must be a whole number >= 0. The scheduler sets it: leave it as it is.",
                    variable->first, Shown(text));
  }
  return value;
}

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
  if (size > kMaxRanks) {
    throw UserError("this {} has {} ranks; must be at most {}. Start fewer.", what, size, kMaxRanks);
  }
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
