// ScriptChannel: the network of a task under test: it delivers what an Input says, in any order and with any
// damage, and looks at what the task sends. Time stands still but for what the script lets pass: the clock of
// the whole process (script.cc). Owner: the target. Thread: the task's; the heartbeats of the task have a
// SilentChannel.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fuzz/input.h"
#include "fuzz/messages.h"
#include "fuzz/target.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/peer/run_id.h"

namespace dtrain::fuzz {

// Lets time pass for everything in this process that asks Clock.
void PassTime(Clock::duration time);

// The bytes that the process has taken from the heap and not given back.
int64_t HeapBytes();

// Thrown at the end of the script: the run of the target is over. No exception of the program.
struct ScriptEnd {};

class ScriptChannel : public net::Channel {
 public:
  // A conversation of the script with the task.
  struct Peer {
    net::NodeId node = 0;
    TaskId as;
    std::vector<wire::Body> kinds;  // what it sends
    size_t tensor_bytes = 0;        // what its tensors have; 0: as the channel says
    bool answers = false;           // its messages have the numbers of the task's open requests
    uint64_t request = 0;           // the last number, where it asks itself
    std::deque<uint64_t> open;      // the task's requests that it has not answered
    bool full = false;              // it does not read
    bool gone = false;
  };

  ScriptChannel(Input& input, const Config& config, size_t tensor_bytes)
      : input_(input), config_(config), tensor_bytes_(tensor_bytes) {}

  std::string Bind(const std::string& address) override { return address; }
  std::string BindDescriptor(int) override { return "script:0"; }
  // The conversations that the task begins become those peers, in their order, that have no node yet.
  void Connect(net::NodeId id, const std::string& address) override;
  void Disconnect(net::NodeId) override {}
  net::SendResult Send(net::NodeId to, net::Message& message) override;
  net::ReceiveResult Receive(TimePoint deadline, net::NodeId* from, net::Message* message) override;
  net::ChannelStats stats() const override { return {}; }

  // Delivers this before the rest of the script.
  void Deliver(size_t peer, net::Message message) { first_.emplace_back(peer, std::move(message)); }
  // Delivers a message of this kind with the next number of its peer, and fields of `fields`.
  void DeliverKind(size_t peer, wire::Body kind, const std::vector<uint8_t>& fields = {});

  std::vector<Peer> peers;
  int ps = 0;                      // that the tasks of the script look for
  RunId run;                       // that the task has named last
  bool somebody_was_full = false;  // what a peer did not take may wait in the task
  // Called with each message that the task hands to this channel, with those of them that the peer takes, and
  // with each that the task gets; may be empty.
  std::function<void(Peer& to, const wire::Envelope& envelope, const net::Message& message)> on_tried;
  std::function<void(Peer& to, const wire::Envelope& envelope)> on_sent;
  std::function<void(Peer& from, const net::Message& message)> on_delivered;
  // Called when nothing comes for a while; may be empty.
  std::function<void()> on_quiet;

 private:
  uint64_t NumberFor(Peer& peer, uint8_t flags);
  net::Message Make(Peer& peer, uint8_t flags, Input& input, wire::Body kind);
  void Hand(Peer& peer, net::Message made, net::NodeId* from, net::Message* message);

  Input& input_;
  const Config& config_;
  const size_t tensor_bytes_;
  std::deque<std::pair<size_t, net::Message>> first_;
  int64_t delivered_ = 0;
  // A message that comes several times, each with a number of its own.
  int repeats_ = 0;
  size_t repeated_peer_ = 0;
  wire::Body repeated_kind_ = wire::Body::NONE;
};

// The connection of heartbeats: nothing comes.
class SilentChannel : public net::Channel {
 public:
  std::string Bind(const std::string& address) override { return address; }
  std::string BindDescriptor(int) override { return "silent:0"; }
  void Connect(net::NodeId, const std::string&) override {}
  void Disconnect(net::NodeId) override {}
  net::SendResult Send(net::NodeId, net::Message&) override { return net::SendResult::kSent; }
  net::ReceiveResult Receive(TimePoint, net::NodeId*, net::Message*) override {
    return net::ReceiveResult::kTimeout;
  }
  net::ChannelStats stats() const override { return {}; }
};

// Its first channel may be given; all others are silent.
class ScriptTransport : public net::Transport {
 public:
  explicit ScriptTransport(std::unique_ptr<net::Channel> first = nullptr) : first_(std::move(first)) {}
  std::unique_ptr<net::Channel> NewChannel() override {
    return first_ != nullptr ? std::move(first_) : std::make_unique<SilentChannel>();
  }

 private:
  std::unique_ptr<net::Channel> first_;
};

}  // namespace dtrain::fuzz
