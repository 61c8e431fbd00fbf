#include "trainer/optim/optimizer.h"

#include "base/check.h"
#include "trainer/optim/sgd.h"

namespace dtrain {

std::unique_ptr<Optimizer> MakeOptimizer(const Config& config, int64_t size) {
  const OptimizerConfig& optimizer = config.train.optimizer;
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return std::make_unique<Sgd>(optimizer.learning_rate, size);
  }
  DT_CHECK(false, static_cast<int>(optimizer.kind));
  return nullptr;
}

}  // namespace dtrain
