// launch.hosts: the one key whose names the user makes up: machines, each with a few settings of its own.
// Reading it out of YAML, strictly as everything else (fields.cc writes it back). Thread: any.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/launch_config.h"
#include "trainer/config/yaml.h"

namespace dtrain {

struct HostProblem {
  int line = 0;
  std::string text;  // "launch.hosts.node1.user = 5; rule. remedy"
};

// What `node`, a map, says is changed in `hosts`; null puts a default back. `key` is for messages.
std::vector<HostProblem> ReadHostMap(const std::string& key, const YamlNode& node, LaunchHosts* hosts);

}  // namespace dtrain
