#include "trainer/config/determinism.h"

#include <fmt/format.h>

namespace dtrain {

std::string FirstNondeterministicKey(const Config& config) {
  const TrainConfig& train = config.train;
  if (train.mode == TrainMode::kAsync) return "train.mode: async";
  if (train.mode == TrainMode::kSsp) return "train.mode: ssp";
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  if (train.aggregate.value_or(workers) < workers)
    return fmt::format("train.aggregate: {}", *train.aggregate);
  return "";
}

}  // namespace dtrain
