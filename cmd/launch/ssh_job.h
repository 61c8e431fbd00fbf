// Jobs of `dtrain launch` over a real sshd at 127.0.0.1.
#pragma once

#include <string>
#include <vector>

#include "cmd/launch/launch_job.h"
#include "cmd/testing/ssh_hosts.h"

namespace dtrain::testing {

const std::vector<std::string> kHosts = {"127.0.0.2", "127.0.0.3"};
// An address for ssh makes a machine one that is reached over ssh, although it is this one.
constexpr char kOverSsh[] = ", address: there";

inline LaunchJob Job(const std::string& job, const SshServer& server, const std::string& more_keys = "") {
  return LaunchJob(job, server.client_config(), kHosts, kOverSsh + more_keys);
}

inline std::string LastLine(const std::string& text) {
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

}  // namespace dtrain::testing
