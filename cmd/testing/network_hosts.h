// NetworkHosts: hosts for tests, made of namespaces of this machine. Each has a name, processes and an
// address of its own, and at /srv a disk that no other host sees; of everything else it sees what this
// machine has. They are behind a bridge, with this process at 10.77.0.1. Nothing of a host outlives it, also
// when the test is killed. The calling thread moves to a network namespace of its own, for good, so that two
// tests at once do not meet. Owner: the test. Thread: the test's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/testing/process.h"

namespace dtrain::testing {

class NetworkHosts {
 public:
  // Hosts 0 to `count` - 1, with empty disks. Where the system allows no such hosts there are none, and the
  // test case is skipped.
  explicit NetworkHosts(int count);
  ~NetworkHosts();
  NetworkHosts(const NetworkHosts&) = delete;
  NetworkHosts& operator=(const NetworkHosts&) = delete;
  bool running() const { return !hosts_.empty(); }

  static std::string Address(int host);  // "10.77.0.2" is host 0
  static std::string Name(int host);     // "host0"
  // The directory here that is /srv there.
  const std::string& Disk(int host) const;
  // Runs a program there, by its path. It ends with the host; a signal does not reach it.
  Process& Start(int host, const std::vector<std::string>& command);

  // The link of a host, and with it all connections.
  void Cut(int host) const;
  void Mend(int host) const;

  // Its link goes, so that no peer is told, and SIGKILL ends all of its processes: they have ended on return.
  void PowerOff(int host);
  // It starts anew at its address, with the disk that it had or with another one. False where it cannot.
  bool PowerOn(int host);
  bool PowerOn(int host, const std::string& disk);

 private:
  struct Host {
    std::string disk;
    std::vector<std::unique_ptr<Process>> started;
    std::unique_ptr<Process> holder;  // of its namespaces; its child is their first process
  };
  static void EndProcesses(Host& host);
  std::vector<std::string> Inside(int host, const std::vector<std::string>& command) const;

  std::vector<Host> hosts_;
};

// Whether a program of the system succeeds; what it says goes to standard output where it does not.
bool Succeeds(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace dtrain::testing
