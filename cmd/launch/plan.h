// The plan of `dtrain launch`: which task runs where, by which command. Plain data, from the config.
#pragma once

#include <string>
#include <vector>

#include "cmd/arguments.h"
#include "cmd/launch/machine.h"

namespace dtrain {

struct PlannedTask {
  TaskId task;
  Machine machine;
  bool gets_copy = false;            // of the config, and of the program unless the machine has one
  std::string config;                // the path of the file there
  std::vector<std::string> command;  // that starts the task, from here
};

// The ps, then the workers. `live`: worker 0 shows how far it is. Throws UserError where a value cannot stand
// in a command line.
std::vector<PlannedTask> PlanLaunch(const ConfigArguments& arguments, const Config& config, bool live);

// In each machine's directory, with launch.copy.
constexpr char kCopiedProgram[] = ".dtrain/bin/dtrain";
constexpr char kCopiedLibraries[] = ".dtrain/lib/";

// This program's file.
std::string OwnProgram();

}  // namespace dtrain
