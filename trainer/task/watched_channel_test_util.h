// WatchedTransport: a worker's transport on which the messages to and from the ps are watched, repeated, or
// cut off in the middle of a gradient.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/codec.h"

namespace dtrain {

// Thrown to make a worker vanish like a killed process. It is not a std::exception, so no goodbye is sent.
struct Vanished {};

// How one incarnation of a worker talks to its ps. Thread: the worker's.
struct Wire {
  int64_t repeat_every = 0;       // every n-th request; 0: none
  int64_t blocks_until_end = -1;  // gradient blocks still to send before the worker vanishes; -1: it does not
  std::function<void()> on_start;  // called when the worker is told to start

  int64_t requests = 0;
  std::map<std::string, std::vector<uint64_t>> final_versions;  // by ps: of its blocks, after the last step
  bool all_done = false;
};

class WatchedChannel : public net::Channel {
 public:
  WatchedChannel(std::unique_ptr<net::Channel> channel, Wire& wire)
      : channel_(std::move(channel)), wire_(wire) {}

  std::string Bind(const std::string& address) override { return channel_->Bind(address); }
  std::string BindDescriptor(int fd) override { return channel_->BindDescriptor(fd); }
  void Connect(net::NodeId id, const std::string& address) override {
    addresses_[id] = address;
    channel_->Connect(id, address);
  }
  void Disconnect(net::NodeId id) override { channel_->Disconnect(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    const wire::Envelope* envelope = net::Decode(message);
    if (envelope->body_as_Push() != nullptr && wire_.blocks_until_end >= 0 && wire_.blocks_until_end-- == 0) {
      throw Vanished();
    }
    const bool request = envelope->request() != 0 && wire_.repeat_every > 0;
    net::Message again;
    if (request && ++wire_.requests % wire_.repeat_every == 0) {
      again.header = message.header.Share();
      if (!message.payload.empty()) again.payload = message.payload.Share();
    }
    const net::SendResult result = channel_->Send(peer, message);
    if (!again.header.empty()) channel_->Send(peer, again);
    return result;
  }
  net::ReceiveResult Receive(TimePoint deadline, net::NodeId* from, net::Message* message) override {
    const net::ReceiveResult result = channel_->Receive(deadline, from, message);
    if (result != net::ReceiveResult::kMessage) return result;
    const wire::Envelope* envelope = net::Decode(*message);
    if (envelope->body_as_Start() != nullptr && wire_.on_start) wire_.on_start();
    const wire::Grant* grant = envelope->body_as_Grant();
    if (grant != nullptr && grant->evaluate()) wire_.all_done = true;
    const wire::Weights* weights = envelope->body_as_Weights();
    if (weights != nullptr && wire_.all_done) {
      wire_.final_versions[addresses_[*from]].push_back(weights->version());
    }
    return result;
  }
  net::ChannelStats stats() const override { return channel_->stats(); }
  uint64_t Connections(net::NodeId id) const override { return channel_->Connections(id); }

 private:
  const std::unique_ptr<net::Channel> channel_;
  Wire& wire_;
  std::map<net::NodeId, std::string> addresses_;
};

// Watches the first channel of a task, the one to its ps.
class WatchedTransport : public net::Transport {
 public:
  WatchedTransport(net::Transport& transport, Wire& wire) : transport_(transport), wire_(wire) {}
  std::unique_ptr<net::Channel> NewChannel() override {
    std::unique_ptr<net::Channel> channel = transport_.NewChannel();
    if (std::exchange(made_, true)) return channel;
    return std::make_unique<WatchedChannel>(std::move(channel), wire_);
  }

 private:
  net::Transport& transport_;
  Wire& wire_;
  bool made_ = false;
};

}  // namespace dtrain
