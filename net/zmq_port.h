// ZmqPort: one ZeroMQ socket of a ZmqChannel: the ROUTER, or the DEALER of a conversation, which is made anew
// where libzmq would not come back to its peer. Owner: the channel. Thread: its.
#pragma once

#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/clock.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/handshake_monitor.h"
#include "net/zmq_options.h"

namespace dtrain::net {

using ZmqSocket = std::unique_ptr<void, int (*)(void*)>;
using RoutingId = std::array<unsigned char, 8>;

RoutingId ToRoutingId(NodeId id);

template <typename Value>
void SetOption(void* socket, int option, Value value) {
  DT_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0, option, value, errno);
}

// A socket with what all have in common. `max_received`: the messages of a connection that wait here at most.
// Throws IoError when too many files are open.
ZmqSocket NewZmqSocket(void* zmq_context, const ZmqOptions& options, int type, int64_t max_bytes,
                       int max_received);

struct ZmqPort {
  // Makes the socket. A DEALER throws IoError, and stays as it was, when too many files are open.
  void Open(void* zmq_context, const ZmqOptions& options, bool through_ipv6);
  // A DEALER has taken no message: its name is looked up in the other family, or its connection made anew,
  // when it is time for that.
  void Retry(void* zmq_context, const ZmqOptions& options);
  // Why a DEALER is not connected (Channel::WhyNotConnected).
  std::string WhyNotConnected(const ZmqOptions& options);
  // Keeps the descriptor that says when there is news.
  void FindSignal();

  ZmqSocket socket{nullptr, zmq_close};
  int signal_fd = -1;  // readable when libzmq has news for the socket
  int receive_timeout_ms = -1;
  bool drained = false;  // nothing to receive until signal_fd is readable
  bool is_router = false;
  NodeId id = 0;  // this and the fields below: of a DEALER
  Address address;
  bool as_ipv6 = false;  // how the name is looked up now
  bool connected_once = false;
  uint64_t connections = 0;
  TimePoint opened;
  milliseconds answer_timeout{1000};   // of a handshake; doubles at each attempt
  milliseconds admission_timeout{80};  // for the first acknowledgement; grows at each attempt
  std::unique_ptr<HandshakeMonitor> handshakes;
  std::string last_refusal;  // why the connection before this one did not come about
  std::string server;        // with keys: whose listed key the peer has
  size_t next_key = 0;       // the one to try next, modulo their number: two while a key is being changed

 private:
  void Reopen(void* zmq_context, const ZmqOptions& options, bool through_ipv6);
  void TryOtherFamily(void* zmq_context, const ZmqOptions& options);
  void RetryHandshake(void* zmq_context, const ZmqOptions& options);
};

}  // namespace dtrain::net
