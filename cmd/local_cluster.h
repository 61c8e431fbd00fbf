// The cluster that `dtrain local` makes: sockets that listen before any task runs, so that no port can be
// lost to somebody else, and the command line of each child.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/arguments.h"
#include "cmd/child_process.h"
#include "cmd/run_results.h"
#include "trainer/config/config.h"

namespace dtrain {

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

// What the children of one cluster share with the parent; the owner keeps it open as long as children start.
struct SharedWithChildren {
  std::vector<ListeningSocket> ps;
  std::optional<ListeningSocket> feed;  // where worker 0 feeds the others; unset: it does not
  const RunResults* results = nullptr;  // where they leave the run's result
  int lost_fd = -1;                     // where each tells whom it has given up
};

// The flags of one child for each ps and worker of `spec`; with `live` worker 0 sends its live line to this
// process.
std::vector<ChildCommand> LocalCommands(const ConfigArguments& config, const Config& spec,
                                        const SharedWithChildren& shared, bool live);

// Renames all for a cluster of threads, where each needs a name of its own; no port is opened.
void NameForThreads(ClusterConfig* cluster);

}  // namespace dtrain
