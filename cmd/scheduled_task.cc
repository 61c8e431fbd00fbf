#include "cmd/scheduled_task.h"

#include "cmd/eval_command.h"
#include "cmd/load_config.h"
#include "cmd/result_file.h"
#include "cmd/scheduled.h"
#include "cmd/task_command.h"

namespace dtrain {
namespace {

// Where this process writes its result; empty: nowhere. The command line is everybody's, and `path` is worker
// 0's, unless a process fails before it knows who it is.
std::string ResultOf(const std::string& path, const Scheduled& scheduled) {
  if (path.empty() || !scheduled.assignment) return path;
  if (!scheduled.assignment->task) return path + ".evaluator";
  const TaskId task = *scheduled.assignment->task;
  return task.role == Role::kWorker && task.index == 0 ? path : "";
}

Config Load(const TaskArguments& arguments, const LoadOptions& options, const Scheduled& scheduled,
            const ErrorLines& errors) {
  try {
    Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
    if (!scheduled.assignment->task) EvaluatedDirectory(config, scheduled);  // there must be one
    return config;
  } catch (const Failure& failure) {
    ResultFile(ResultOf(arguments.result, scheduled), errors).WriteEnding(StatusOf(failure.code()));
    throw;
  }
}

// The same config with the cluster spelled out.
ConfigArguments WithCluster(ConfigArguments config, const ClusterConfig& cluster) {
  config.sets.push_back(SetAddresses("cluster.ps", cluster.ps));
  config.sets.push_back(SetAddresses("cluster.worker", cluster.worker));
  return config;
}

// The same task with role, index and cluster spelled out.
TaskArguments Plain(const TaskArguments& arguments, const Scheduled& scheduled) {
  const Assignment& assignment = *scheduled.assignment;
  TaskArguments plain = arguments;
  plain.from.reset();
  plain.task = assignment.task;
  plain.config = WithCluster(arguments.config, assignment.cluster);
  plain.notes.push_back(assignment.name);
  if (!scheduled.replaced.empty()) plain.notes.push_back(scheduled.replaced);
  plain.result = ResultOf(arguments.result, scheduled);
  return plain;
}

}  // namespace

int RunScheduledTask(const TaskArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  LoadOptions options;
  options.log_json = &errors.json;
  Scheduled scheduled;
  UseScheduler(arguments.from, arguments.config, &options, &scheduled);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, options);
  const Config config = Load(arguments, options, scheduled, errors);
  if (scheduled.assignment->task) return RunTaskCommand(Plain(arguments, scheduled), new_runtime, errors);
  EvalArguments evaluator;
  evaluator.path = config.checkpoint.dir;
  evaluator.config = WithCluster(arguments.config, scheduled.assignment->cluster);
  evaluator.result = ResultOf(arguments.result, scheduled);
  evaluator.follow = true;
  try {
    return RunEvalCommand(evaluator, new_runtime, errors);
  } catch (const PeerLost& lost) {
    errors.Print(FailureText(lost));
    return ProcessExitCode(lost.code(), config.failure);
  }
}

}  // namespace dtrain
