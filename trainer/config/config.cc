#include "trainer/config/config.h"

#include <fmt/core.h>

namespace dtrain {

const char* KindName(ModelKind kind) {
  switch (kind) {
    case ModelKind::kLinear:
      return "linear";
    case ModelKind::kLogistic:
      return "logistic";
    case ModelKind::kSoftmax:
      return "softmax";
    case ModelKind::kMlp:
      return "mlp";
  }
  return "";
}

std::string TaskName(TaskId task) {
  return fmt::format("{} {}", task.role == Role::kPs ? "ps" : "worker", task.index);
}

std::string TaskNameAndAddress(const ClusterConfig& cluster, TaskId task) {
  const auto& addresses = task.role == Role::kPs ? cluster.ps : cluster.worker;
  if (task.index < 0 || task.index >= static_cast<int>(addresses.size())) return TaskName(task);
  return fmt::format("{} ({})", TaskName(task), addresses[task.index]);
}

}  // namespace dtrain
