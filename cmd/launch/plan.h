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
  bool gets_copy = false;            // of the config
  bool gets_program = false;         // too
  std::string config;                // the path of the file there
  std::vector<std::string> command;  // that starts the task, from here
};

// Who runs the commands.
struct PlanFor {
  bool relays = false;     // otherwise a person, who need not say that he is alive
  bool live = false;       // worker 0 shows how far it is
  bool tells_end = false;  // of the run, once for all tasks
};

// The ps, then the workers. Throws UserError where a value cannot stand in a command line.
std::vector<PlannedTask> PlanLaunch(const ConfigArguments& arguments, const Config& config, PlanFor who);

// In a machine's directory, with launch.copy: ".dtrain/DIGITS/bin/dtrain", by the file's checksum, so that
// runs of several versions can share a directory. Its libraries are in DIGITS/lib.
std::string CopiedProgram();

// This program's file.
std::string OwnProgram();

}  // namespace dtrain
