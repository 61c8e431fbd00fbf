#include "cmd/run/task_child.h"

#include "cmd/common/load_config.h"

namespace dtrain {
namespace {

// A task whose failure.grace_s has passed has still to write its result.
constexpr milliseconds kAfterGrace{5000};

}  // namespace

std::vector<TaskId> TasksOf(const ClusterConfig& cluster) {
  std::vector<TaskId> tasks;
  for (size_t i = 0; i < cluster.ps.size(); ++i) tasks.push_back({Role::kPs, static_cast<int>(i)});
  for (size_t i = 0; i < cluster.worker.size(); ++i) tasks.push_back({Role::kWorker, static_cast<int>(i)});
  return tasks;
}

ChildCommand ChildFor(const Config& spec, TaskId task) {
  ChildCommand command;
  const bool ps = task.role == Role::kPs;
  command.name = TaskName(task);
  command.can_return = !ps || RecoversPs(spec);
  command.may_be_lost = !ps && IsExpendable(spec, task.index);
  return command;
}

std::vector<std::string> TaskWords(TaskId task) {
  return {"--role", task.role == Role::kPs ? "ps" : "worker", "--index", std::to_string(task.index)};
}

void Inherit(ChildCommand* command, const char* option, int fd) {
  command->arguments.push_back(option);
  command->arguments.push_back(std::to_string(fd));
  command->inherited.push_back(fd);
}

RestartRules RestartRulesOf(const FailureConfig& failure) {
  RestartRules rules;
  rules.max = failure.restarts;
  rules.max_pause = std::chrono::seconds(kLongestRestartPauseS);
  rules.peer_lost_exit = static_cast<int>(failure.peer_lost_exit);
  rules.never_lost_before = milliseconds(static_cast<int64_t>(failure.detect_s * 1000));
  return rules;
}

ShutdownTimeouts TimeoutsOf(const FailureConfig& failure) {
  ShutdownTimeouts timeouts;
  timeouts.after_stop = GraceOf(failure) + kAfterGrace;
  return timeouts;
}

}  // namespace dtrain
