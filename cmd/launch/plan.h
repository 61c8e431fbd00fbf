// The plan of `dtrain launch`: which task runs where, by which command; and Machine, where that is and how a
// command is started there. Plain data, from the config.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cmd/common/arguments.h"
#include "trainer/config/config.h"

namespace dtrain {

struct Machine {
  std::string name;   // as in the cluster's addresses, or launch.hosts
  bool here = false;  // this one: without ssh
  LaunchHost how;     // `address` and `directory` are set
};

// The machine of an address's host. What launch.hosts does not say is as in `defaults`. A machine with a user
// or an address of its own is reached over ssh even where it is this one.
Machine MachineOf(const std::string& host, const LaunchHosts& hosts, const std::set<std::string>& own_names,
                  const LaunchHost& defaults);

// The words before the program's arguments: variables, directory and program.
std::vector<std::string> ProgramWords(const Machine& machine);

// The words of a command that runs `words` there: the words themselves, or ssh with them, quoted.
std::vector<std::string> WordsThere(const Machine& machine, const std::vector<std::string>& words,
                                    const LaunchConfig& launch);
// The same for a line of /bin/sh there.
std::vector<std::string> ShellThere(const Machine& machine, const std::string& line,
                                    const LaunchConfig& launch);

// What a person has to write behind `ssh` to get where WordsThere() does: "-F cluster.ssh ann@node1", quoted.
// Port and keys are in that file, or in ~/.ssh/config for both. Empty where no ssh is needed.
std::string LoginThere(const Machine& machine, const LaunchConfig& launch);

struct PlannedTask {
  TaskId task;
  Machine machine;
  bool gets_copy = false;            // the config is copied there
  bool gets_program = false;         // and so is the program
  std::string config;                // the path of the file there
  std::vector<std::string> command;  // that starts the task, from here
};

// For whom the plan is made.
struct PlanFor {
  bool launcher = false;   // which says that it is there; else for a person, who need not
  bool live = false;       // worker 0 shows how far it is
  bool tells_end = false;  // the launcher logs how the run ended, once for all tasks
};

// The ps, then the workers. Throws UserError where a value cannot stand in a command line.
std::vector<PlannedTask> PlanLaunch(const ConfigArguments& arguments, const Config& config, PlanFor who);

// In a machine's directory, with launch.copy: ".dtrain/DIGITS/bin/dtrain", by the file's checksum, so that
// runs of several versions can share a directory. Its libraries are in DIGITS/lib.
std::string CopiedProgram();

// This program's file.
std::string OwnProgram();

}  // namespace dtrain
