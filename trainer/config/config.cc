#include "trainer/config/config.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>

#include "trainer/config/task_address.h"

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

std::optional<int64_t> ColumnNumber(const std::string& label) {
  if (label.empty() || label.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  int64_t number = 0;
  const auto result = std::from_chars(label.data(), label.data() + label.size(), number);
  return result.ec == std::errc() ? number : std::numeric_limits<int64_t>::max();
}

std::string TaskName(TaskId task) {
  return fmt::format("{} {}", task.role == Role::kPs ? "ps" : "worker", task.index);
}

std::string TaskNameAndAddress(const ClusterConfig& cluster, TaskId task) {
  const auto& addresses = task.role == Role::kPs ? cluster.ps : cluster.worker;
  if (task.index < 0 || task.index >= static_cast<int>(addresses.size())) return TaskName(task);
  const std::string address = KnownAddress(cluster, task);
  return address.empty() ? TaskName(task) : fmt::format("{} ({})", TaskName(task), address);
}

}  // namespace dtrain
