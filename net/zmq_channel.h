// ZmqChannel: a Channel over ZeroMQ. Where it binds, one ROUTER serves all peers; each conversation that it
// begins is a DEALER of its own, whose routing id is the NodeId. docs/wire.md describes the frames.
// Owner: whoever called ZmqTransport::NewChannel. Thread: the one that uses it.
#pragma once

#include <poll.h>
#include <zmq.h>

#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/channel.h"
#include "net/zmq_transport.h"

namespace dtrain::net {

class ZmqChannel final : public Channel {
 public:
  ZmqChannel(void* zmq_context, const ZmqOptions& options);

  std::string Bind(const std::string& address) override;
  std::string BindDescriptor(int listening_fd) override;
  // Throws UserError for a malformed address and for port 0. A name is looked up as an IPv4 name; where that
  // leads to nobody, now and then as an IPv6 name.
  void Connect(NodeId id, const std::string& address) override;
  void Disconnect(NodeId id) override;
  SendResult Send(NodeId peer, Message& message) override;
  // Comes back early, with kTimeout, when a signal handler has run: the caller can look at its flags.
  ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) override;
  ChannelStats stats() const override { return stats_; }
  uint64_t Connections(NodeId id) const override;

 private:
  using Socket = std::unique_ptr<void, int (*)(void*)>;

  // One ZeroMQ socket: the ROUTER, or the DEALER of a conversation.
  struct Port {
    Socket socket{nullptr, zmq_close};
    int signal_fd = -1;  // readable when libzmq has news for the socket
    int receive_timeout_ms = -1;
    bool drained = false;  // nothing to receive until signal_fd is readable
    bool is_router = false;
    NodeId id = 0;  // of a DEALER, with the rest of the fields
    Address address;
    bool as_ipv6 = false;  // how the name is looked up at present
    bool connected_once = false;
    uint64_t connections = 0;
    TimePoint opened;
  };

  enum class Taken { kMessage, kNothing, kDropped, kInterrupted, kConnected };

  Socket NewSocket(int type) const;
  void OpenDealer(Port& port, bool as_ipv6);
  void TryOtherFamily(Port& port);
  Port* FindPort(NodeId peer);
  SendResult SendFrames(Port& port, NodeId peer, Message& message);
  Taken Take(Port& port, int flags, NodeId* from, Message* message);
  Taken TakeFromAny(NodeId* from, Message* message);
  static bool ComesBack(Taken taken);
  ReceiveResult ReceiveFromOne(Port& port, TimePoint deadline, NodeId* from, Message* message);
  ReceiveResult ReceiveFromAny(TimePoint deadline, NodeId* from, Message* message);
  bool WaitForSignal(int timeout_ms);

  void* const context_;
  const ZmqOptions options_;
  std::vector<Port> ports_;
  size_t next_port_ = 0;  // who is looked at first, so that nobody waits behind a busy one
  std::vector<pollfd> poll_items_;
  Frame routing_id_;  // of the message being received; kept for its storage
  ChannelStats stats_;
};

}  // namespace dtrain::net
