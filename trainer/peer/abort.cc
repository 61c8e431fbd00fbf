#include "trainer/peer/abort.h"

namespace dtrain {

std::string AbortText(const ClusterConfig& cluster, const wire::Abort& abort) {
  const TaskId task{abort.role() == wire::Role::Ps ? Role::kPs : Role::kWorker,
                    static_cast<int>(abort.index())};
  const size_t count = task.role == Role::kPs ? cluster.ps.size() : cluster.worker.size();
  const std::string name = abort.index() < count ? TaskNameAndAddress(cluster, task) : TaskName(task);
  return fmt::format("{} ended the run with exit code {}: {}", name, abort.exit_code(),
                     abort.text()->c_str());
}

}  // namespace dtrain
