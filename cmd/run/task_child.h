// What every launcher knows of a task as its child, wherever the task runs.
#pragma once

#include <string>
#include <vector>

#include "cmd/run/child_process.h"
#include "cmd/run/supervisor.h"
#include "trainer/config/config.h"

namespace dtrain {

// Every task of the cluster: the ps, then the workers.
std::vector<TaskId> TasksOf(const ClusterConfig& cluster);

// The child that is this task: its name, and whether it can return or be lost; no arguments yet.
ChildCommand ChildFor(const Config& spec, TaskId task);
// "--role worker --index 1"
std::vector<std::string> TaskWords(TaskId task);
// Adds `option` and the descriptor, which stays open in the child.
void Inherit(ChildCommand* command, const char* option, int fd);

RestartRules RestartRulesOf(const FailureConfig& failure);
ShutdownTimeouts TimeoutsOf(const FailureConfig& failure);

}  // namespace dtrain
