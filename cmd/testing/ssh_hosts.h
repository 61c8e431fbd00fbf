// Machines that are reached over ssh, for tests: real sshds with keys, known hosts and a client configuration
// of their own. Nothing of the user's ~/.ssh is read or written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/testing/job.h"
#include "cmd/testing/network_hosts.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {

// Keys for the machines and for the user, in a directory of the test.
class SshKeys {
 public:
  SshKeys();
  const std::string& directory() const { return directory_; }
  // The public key of the machines: "ssh-ed25519 AAAA...".
  std::string MachineKey() const;
  // One that no machine has.
  std::string OtherKey() const;
  // A file for sshd that listens there; `more` are lines of it.
  std::string ServerConfig(const std::string& address, const std::string& port,
                           const std::string& more = "") const;
  // A file for ssh -F: every name leads to `target` (empty: to itself) and has the key `known`.
  std::string ClientConfig(const std::string& name, const std::string& target, const std::string& port,
                           const std::string& known) const;

 private:
  std::string directory_ = NewDirectory();
};

// One sshd at 127.0.0.1, on a port of its own.
class SshServer {
 public:
  // `more`: lines of its configuration.
  explicit SshServer(const std::string& more = "");
  ~SshServer();
  bool running() const { return sshd_ != nullptr; }
  const SshKeys& keys() const { return keys_; }
  std::string port() const;
  // For ssh -F: every machine is this one.
  const std::string& client_config() const { return client_config_; }

 private:
  SshKeys keys_;
  ReservedPort port_;
  std::string client_config_;
  std::unique_ptr<Process> sshd_;
};

// Two NetworkHosts as machines, 10.77.0.2 and 10.77.0.3, each with sshd.
class SshNetwork {
 public:
  SshNetwork();
  bool running() const { return !client_config_.empty(); }
  const std::string& client_config() const { return client_config_; }
  const NetworkHosts& hosts() const { return hosts_; }

 private:
  SshKeys keys_;
  std::string client_config_;
  NetworkHosts hosts_{2};
};

}  // namespace dtrain::testing
