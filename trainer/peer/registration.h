// Registration: how a task becomes known to one ps: Hello until Welcome, with every reason why not yet.
// Owner and thread: the task's main loop.
#pragma once

#include <string>

#include "base/clock.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_link.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

class Registration {
 public:
  // Begins to connect. `self` wants to talk to ps `ps_index` of the spec. `incarnation`: the same to every
  // ps. `open_blocks`: how many blocks of tensors may be open with it.
  Registration(const Config& config, TaskId self, int ps_index, uint64_t incarnation, net::Channel& channel,
               int64_t open_blocks = kOpenBlocks);

  PeerLink& link() { return link_; }
  const PeerLink& link() const { return link_; }
  const std::string& address() const { return address_; }
  bool welcomed() const { return welcomed_; }
  RunId run() const { return run_; }
  // Of ps 0: it has a checkpoint.dir, so that the run can go back to a checkpoint.
  bool saves() const { return saves_; }

  void SayHello();
  void OnWelcome(RunId run, bool saves);
  // Reasons that may pass are kept for Waiting(); others throw UserError with the ps's own words. Of a task
  // that was in the run already any may: a ps that was restarted with another config may give way to the
  // right one.
  void OnRefuse(const wire::Refuse& refuse);
  void set_was_in_run() { was_in_run_ = true; }
  void Forget() { welcomed_ = false; }
  // Forgets, and is another task from now on.
  void BeginAnew(uint64_t incarnation) {
    Forget();
    incarnation_ = incarnation;
  }

  // "ps 1 (10.0.0.2:9001): connection refused; start it, or check the address". Tries the address to
  // learn why: may take half a second, or longer while a name is looked up.
  std::string Waiting() const;

 private:
  const Config& config_;
  const TaskId self_;
  const int ps_index_;
  uint64_t incarnation_;
  const std::string address_;
  net::Channel& channel_;
  net::Encoder encoder_;
  PeerLink link_;
  bool was_in_run_ = false;
  bool welcomed_ = false;
  RunId run_;
  bool saves_ = false;
  std::string last_refusal_;
  TimePoint refused_;
};

}  // namespace dtrain
