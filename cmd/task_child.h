// What every launcher knows of a task as its child, wherever the task runs.
#pragma once

#include <string>
#include <vector>

#include "cmd/child_process.h"
#include "cmd/supervisor.h"
#include "trainer/config/config.h"

namespace dtrain {

// Every task of the cluster: the ps, then the workers.
std::vector<TaskId> TasksOf(const ClusterConfig& cluster);

// Its name, and whether it can return or be spared; no arguments yet.
ChildCommand ChildFor(const Config& spec, TaskId task);
// "--role worker --index 1"
std::vector<std::string> TaskWords(TaskId task);
// Adds `option` and the descriptor, which stays open in the child.
void Inherit(ChildCommand* command, const char* option, int fd);

RestartRules RestartRulesOf(const FailureConfig& failure);
Patience PatienceOf(const FailureConfig& failure);

}  // namespace dtrain
