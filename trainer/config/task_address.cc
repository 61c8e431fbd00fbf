#include "trainer/config/task_address.h"

#include <fmt/format.h>

#include "base/names.h"
#include "trainer/config/address_rule.h"

namespace dtrain {
namespace {

bool HasPort(const std::string& address) { return !AddressIdentity(address).empty(); }

}  // namespace

std::string KnownAddress(const ClusterConfig& cluster, TaskId task) {
  const auto& addresses = task.role == Role::kPs ? cluster.ps : cluster.worker;
  const std::string& address = addresses.at(static_cast<size_t>(task.index));
  if (HasPort(address)) return address;
  const std::string host = HostOf(address);
  return IsLoopbackHost(host) ? "" : host;
}

std::string WorkersText(const ClusterConfig& cluster) {
  std::string text = Plural(static_cast<int64_t>(cluster.worker.size()), "worker"), addresses;
  bool any = false;
  for (size_t i = 0; i < cluster.worker.size(); ++i) {
    const std::string address = KnownAddress(cluster, {Role::kWorker, static_cast<int>(i)});
    any = any || !address.empty();
    addresses += " " + (address.empty() ? "-" : address);
  }
  return any ? text + addresses : text;
}

}  // namespace dtrain
