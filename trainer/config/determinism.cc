#include "trainer/config/determinism.h"

#include <fmt/format.h>

namespace dtrain {

bool RoundsWaitForLost(const Config& config) {
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  return config.train.mode == TrainMode::kSync && config.failure.worker_lost == WorkerLost::kWait &&
         config.train.aggregate.value_or(workers) >= workers;
}

std::string FirstNondeterministicKey(const Config& config) {
  const TrainConfig& train = config.train;
  if (train.mode == TrainMode::kAsync) return "train.mode: async";
  if (train.mode == TrainMode::kSsp) return "train.mode: ssp";
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  if (train.aggregate.value_or(workers) < workers)
    return fmt::format("train.aggregate: {}", *train.aggregate);
  if (config.cluster.min_workers.value_or(workers) < workers)
    return fmt::format("cluster.min_workers: {}", *config.cluster.min_workers);
  if (config.failure.on_sigterm == OnSigterm::kLeave) return "failure.on_sigterm: leave";
  return "";
}

}  // namespace dtrain
