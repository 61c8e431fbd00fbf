#include "cmd/cluster_size.h"

namespace dtrain {
namespace {

constexpr int kDefaultPs = 1;
constexpr int kDefaultWorkers = 2;

int Count(const std::optional<int>& flag, const std::vector<std::string>& named, int otherwise) {
  if (flag) return *flag;
  return named.empty() ? otherwise : static_cast<int>(named.size());
}

}  // namespace

LoadOptions SizedOptions(const ClusterSize& size) {
  LoadOptions options;
  options.cluster_optional = true;
  options.default_workers = kDefaultWorkers;
  options.workers = size.workers;
  return options;
}

bool NeedsLocal(const ClusterSize& size, const ClusterConfig& cluster) {
  return size.ps || size.workers || cluster.ps.empty() || cluster.worker.empty();
}

std::vector<std::string> LocalNames(int count) {
  return std::vector<std::string>(static_cast<size_t>(count), "127.0.0.1:0");
}

void MakeLocal(const ClusterSize& size, Config* config) {
  ClusterConfig& cluster = config->cluster;
  cluster.ps = LocalNames(Count(size.ps, cluster.ps, kDefaultPs));
  cluster.worker = LocalNames(Count(size.workers, cluster.worker, kDefaultWorkers));
  config->net.bind.clear();
}

}  // namespace dtrain
