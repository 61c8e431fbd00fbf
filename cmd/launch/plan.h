// The plan of `dtrain launch`: which task runs on which machine, by which command. Plain data, computed from
// the config. Thread: any.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cmd/common/arguments.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/launch_config.h"

namespace dtrain {

struct Machine {
  std::string name;   // the host in the cluster's addresses, or its name in launch.hosts
  bool here = false;  // this machine; no ssh
  LaunchHost how;     // `address` and `directory` are set
};

// Returns the machine for an address's host. Values that launch.hosts does not set are those of `defaults`. A
// machine with a user or an address of its own is reached over ssh even if it is this one.
Machine MachineOf(const std::string& host, const LaunchHosts& hosts, const std::set<std::string>& own_names,
                  const LaunchHost& defaults);

// Returns the words before the program's arguments: variables, directory and program.
std::vector<std::string> ProgramWords(const Machine& machine);

// Returns the command that runs `words` on the machine: the words themselves, or ssh with the words quoted.
std::vector<std::string> RemoteWords(const Machine& machine, const std::vector<std::string>& words,
                                     const LaunchConfig& launch);
// The same for a line of /bin/sh.
std::vector<std::string> RemoteShell(const Machine& machine, const std::string& line,
                                     const LaunchConfig& launch);

// Returns what a person types after `ssh` to reach the machine as the launcher does: "-F cluster.ssh
// ann@node1", quoted. Port and keys come from that file, or from ~/.ssh/config for both. Empty if no ssh is
// needed.
std::string SshLogin(const Machine& machine, const LaunchConfig& launch);

struct PlannedTask {
  TaskId task;
  Machine machine;
  bool gets_copy = false;            // the config is copied there
  bool gets_program = false;         // so is the program
  std::string config;                // the path of the config on that machine
  std::vector<std::string> command;  // starts the task, run on this machine
};

// PlanFor: the user of the plan.
struct PlanFor {
  bool launcher = false;      // the launcher, which sends alive lines; false: a person
  bool live = false;          // worker 0 sends its live line
  bool tells_end = false;     // the launcher logs how the run ended, once for all tasks
  std::string run = {};       // the directory of the run in each machine's; empty: as the config says
  std::string start_id = {};  // RunDirectory::Writer
  bool named = false;         // dtrain has made up the name of `run`
};

// Returns the ps, then the workers. Throws UserError for a value that cannot stand in a command line.
std::vector<PlannedTask> PlanLaunch(const ConfigArguments& arguments, const Config& config,
                                    const PlanFor& who);

// Returns where launch.copy puts the program, relative to the machine's directory:
// ".dtrain/DIGITS/bin/dtrain". DIGITS is from the file's checksum, so that runs of several versions can share
// a directory. The libraries are in DIGITS/lib.
std::string CopiedProgram();

// Returns this program's file.
std::string OwnProgram();

}  // namespace dtrain
