#include "cmd/run_length.h"

#include <algorithm>

#include "cmd/local_cluster.h"
#include "trainer/data/order.h"

namespace dtrain {

int PsCount(const ClusterConfig& cluster) {
  return cluster.ps.empty() ? kDefaultPs : static_cast<int>(cluster.ps.size());
}

int WorkerCount(const ClusterConfig& cluster) {
  return cluster.worker.empty() ? kDefaultWorkers : static_cast<int>(cluster.worker.size());
}

std::optional<int64_t> RunSteps(const Config& config, const std::optional<int64_t>& rows) {
  if (!config.train.epochs || !rows) return config.train.steps;
  OrderSpec spec;
  spec.rows = *rows;
  spec.batch_size = config.train.batch_size;
  spec.drop_short = config.data.last_batch == LastBatch::kDrop;
  const int64_t readers = config.data.split == Split::kFull ? WorkerCount(config.cluster) : 1;
  const int64_t of_epochs = BatchesInAll(spec) * readers * *config.train.epochs;
  return std::min(config.train.steps.value_or(of_epochs), of_epochs);
}

}  // namespace dtrain
