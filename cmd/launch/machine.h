// Machine: where a task of `dtrain launch` runs, and how it is started there. Plain data, from the config.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

struct Machine {
  std::string name;   // as in the cluster's addresses, or launch.hosts
  bool here = false;  // this one: without ssh
  LaunchHost how;     // `address` and `directory` are set
};

// Of the host of an address. What launch.hosts does not say is as in `otherwise`. A machine with a user or an
// address of its own is reached over ssh even where it is this one.
Machine MachineOf(const std::string& host, const LaunchHosts& hosts, const std::set<std::string>& own_names,
                  const LaunchHost& otherwise);

// Before other words: variables, directory and program, so that what follows are the program's arguments.
std::vector<std::string> ProgramWords(const Machine& machine);

// The words of a command that runs `words` there: the words themselves, or ssh with them, quoted.
std::vector<std::string> WordsThere(const Machine& machine, const std::vector<std::string>& words,
                                    const LaunchConfig& launch);
// The same of a line for /bin/sh there.
std::vector<std::string> ShellThere(const Machine& machine, const std::string& line,
                                    const LaunchConfig& launch);

// What a person has to write behind `ssh` to get where WordsThere() does: "-F cluster.ssh ann@node1", quoted.
// Port and keys are in that file, or in ~/.ssh/config for both. Empty where no ssh is needed.
std::string LoginThere(const Machine& machine, const LaunchConfig& launch);

}  // namespace dtrain
