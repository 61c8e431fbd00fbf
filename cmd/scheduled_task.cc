#include "cmd/scheduled_task.h"

#include "cmd/eval_command.h"
#include "cmd/load_config.h"
#include "cmd/result_file.h"
#include "cmd/scheduled.h"
#include "cmd/task_command.h"

namespace dtrain {
namespace {

// Whether --result of this process is its own to write.
bool WritesResult(const Scheduled& scheduled) {
  if (!scheduled.assignment || !scheduled.assignment->task) return true;
  const TaskId task = *scheduled.assignment->task;
  return task.role == Role::kWorker && task.index == 0;
}

Config Load(const TaskArguments& arguments, const LoadOptions& options, const Scheduled& scheduled,
            const ErrorLines& errors) {
  try {
    return LoadConfig(arguments.config.path, arguments.config.sets, options);
  } catch (const Failure& failure) {
    if (WritesResult(scheduled)) ResultFile(arguments.result, errors).WriteEnding(StatusOf(failure.code()));
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
  if (!WritesResult(scheduled)) plain.result.clear();
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
  evaluator.path = EvaluatedDirectory(config, scheduled);
  evaluator.config = WithCluster(arguments.config, scheduled.assignment->cluster);
  // The command line is everybody's, and FILE is worker 0's.
  if (!arguments.result.empty()) evaluator.result = arguments.result + ".evaluator";
  evaluator.follow = true;
  try {
    return RunEvalCommand(evaluator, new_runtime, errors);
  } catch (const PeerLost& lost) {
    errors.Print(FailureText(lost));
    return ProcessExitCode(lost.code(), config.failure);
  }
}

}  // namespace dtrain
