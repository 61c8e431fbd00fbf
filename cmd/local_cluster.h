// The cluster that `dtrain local` makes: sockets that listen before any task runs, so that no port can be
// lost to somebody else, and the command line of each child.
#pragma once

#include <string>
#include <vector>

#include "cmd/arguments.h"
#include "cmd/child_process.h"
#include "trainer/config/config.h"

namespace dtrain {

// The cluster of a file that has none.
constexpr int kDefaultPs = 1;
constexpr int kDefaultWorkers = 2;
// Of the spec, or those.
int PsCount(const ClusterConfig& cluster);
int WorkerCount(const ClusterConfig& cluster);

// A TCP socket that listens at 127.0.0.1, on a port that the system chose. Movable; closes itself.
class ListeningSocket {
 public:
  ListeningSocket();  // throws IoError
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:40001"

 private:
  int fd_ = -1;
  std::string address_;
};

// The flags of one child for each ps and worker. Worker 0 gets `result_fd`, unless it is -1; with `live` it
// sends its live line to this process. `feed`: where worker 0 feeds the others; null: it does not.
std::vector<ChildCommand> LocalCommands(const ConfigArguments& config, const std::vector<ListeningSocket>& ps,
                                        int workers, const ListeningSocket* feed, int result_fd, bool live);

// Addresses that nobody connects to, for workers: only names.
std::vector<std::string> LocalNames(int count);

// The names of a cluster of threads, where each needs one of its own; no port is opened.
ClusterConfig InProcessCluster(int ps, int workers);

}  // namespace dtrain
