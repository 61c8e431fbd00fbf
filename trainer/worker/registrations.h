// Registrations: how a worker becomes known to every ps, and that all of them are of the same run.
// Owner and thread: the worker's PsClient.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/peer/peer_link.h"
#include "trainer/peer/registration.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

class Registrations {
 public:
  // Begins to connect to every ps.
  Registrations(const Config& config, TaskId self, const Layout& layout, net::Channel& channel);

  size_t size() const { return all_.size(); }
  Registration& operator[](size_t ps) { return *all_[ps]; }
  PeerLink& link(size_t ps) { return all_[ps]->link(); }
  std::vector<PeerLink*> links() const;
  // Which ps has that connection; size(): none.
  size_t IndexOf(net::NodeId node) const;

  // Whether every ps has welcomed this task, all for the same run.
  bool welcomed() const;
  RunId run() const { return all_[0]->run(); }
  // ps 0 has a checkpoint.dir.
  bool saves() const { return all_[0]->saves(); }
  // To those that have not welcomed it. With `tell` returns what is waited for; that may take a while.
  std::string SayHello(bool tell);
  // All have answered, but for different runs: ps 0 was restarted meanwhile, and all are asked again.
  void ForgetOtherRuns();
  // Drops what was asked; this is another task from now on.
  void BeginAnew(bool was_in_run);

 private:
  bool AllAnswered() const;

  std::vector<std::unique_ptr<Registration>> all_;  // by ps
};

}  // namespace dtrain
