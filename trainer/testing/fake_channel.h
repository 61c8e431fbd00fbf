// FakeChannel: a Channel under a test's control: it keeps what is sent, and delivers what the test has put
// in. Owner and thread: the test's.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/channel.h"
#include "net/codec.h"

namespace dtrain {

class FakeChannel : public net::Channel {
 public:
  struct Sent {
    net::NodeId to;
    net::Message message;
    const wire::Envelope& envelope() const { return *net::Decode(message); }
  };

  std::string Bind(const std::string& address) override { return address; }
  std::string BindDescriptor(int) override { return "fake:0"; }
  void Connect(net::NodeId id, const std::string& address) override { connected[id] = address; }
  void Disconnect(net::NodeId id) override { connected.erase(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    if (gone.count(peer)) return net::SendResult::kGone;
    if (full) return net::SendResult::kFull;
    sent.push_back({peer, std::move(message)});
    return net::SendResult::kSent;
  }
  net::ReceiveResult Receive(TimePoint, net::NodeId* from, net::Message* message) override {
    if (incoming.empty()) return net::ReceiveResult::kTimeout;
    *from = incoming.front().to;
    *message = std::move(incoming.front().message);
    incoming.pop_front();
    return net::ReceiveResult::kMessage;
  }
  net::ChannelStats stats() const override { return {}; }
  uint64_t Connections(net::NodeId) const override { return connections; }
  std::string WhyNotConnected(net::NodeId) override { return handshake; }
  bool MayActAs(uint32_t key, std::string_view task) const override {
    const auto found = keys.find(key);
    return keys.empty() || (found != keys.end() && found->second == task);
  }

  std::vector<Sent> sent;
  std::deque<Sent> incoming;
  std::set<net::NodeId> gone;
  std::map<net::NodeId, std::string> connected;
  bool full = false;
  uint64_t connections = 0;
  std::string handshake;                 // why it has failed; empty: it has not
  std::map<uint32_t, std::string> keys;  // the listed keys and whose they are; empty: there are no keys
};

}  // namespace dtrain
