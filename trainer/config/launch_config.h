// How `dtrain launch` starts tasks on other machines: launch of the YAML file. Plain data.
#pragma once

#include <map>
#include <string>

#include "trainer/config/choices.h"

namespace dtrain {

// How the tasks of one machine are started; what is empty has its default.
struct LaunchHost {
  std::string user;       // for ssh
  std::string address;    // for ssh, where it is not the name that the cluster's addresses have
  std::string directory;  // where the tasks work
  std::string program;    // dtrain there
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> device;  // of the keys of `device` those that differ there, as YAML

  bool operator==(const LaunchHost& other) const {
    return user == other.user && address == other.address && directory == other.directory &&
           program == other.program && environment == other.environment && device == other.device;
  }
};
using LaunchHosts = std::map<std::string, LaunchHost>;  // by the name in the cluster's addresses

struct LaunchConfig {
  LaunchHosts hosts;
  bool copy = false;
  std::string ssh_config;  // a file; empty: the user's own
  double silence_s = 5;
};

}  // namespace dtrain
