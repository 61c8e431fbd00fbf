#include "net/handshake_monitor.h"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <zmq.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "net/channel.h"

namespace dtrain::net {
namespace {

constexpr int kEvents = ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                        ZMQ_EVENT_CONNECTED;

// An acknowledgement may be delayed, so it takes longer than one way to and fro.
constexpr int kRoundTrips = 4;

}  // namespace

HandshakeMonitor::HandshakeMonitor(void* context, void* socket)
    : socket_(socket), events_(zmq_socket(context, ZMQ_PAIR), zmq_close) {
  const std::string endpoint = fmt::format("inproc://handshakes-{:x}", NewNodeId());
  const int unlimited = 0;  // a thread of libzmq waits where a queue of events is full
  if (events_ == nullptr || zmq_socket_monitor(socket, endpoint.c_str(), kEvents) != 0) {
    throw IoError("cannot open another connection: {}. Raise the limit of open files (ulimit -n).",
                  zmq_strerror(errno));
  }
  DT_CHECK(zmq_setsockopt(events_.get(), ZMQ_RCVHWM, &unlimited, sizeof(unlimited)) == 0, errno);
  DT_CHECK(zmq_connect(events_.get(), endpoint.c_str()) == 0, errno);
}

// The socket has to stop first: an event that nobody can receive would hold libzmq's thread for ever, and
// with it all connections of the process.
HandshakeMonitor::~HandshakeMonitor() { zmq_socket_monitor(socket_, nullptr, 0); }

// An event has two frames: its number and a value of 32 bits, then the address.
void HandshakeMonitor::Read() {
  unsigned char bytes[6];
  int size = 0;
  while ((size = zmq_recv(events_.get(), bytes, sizeof(bytes), ZMQ_DONTWAIT)) >= 0) {
    char address[1];
    zmq_recv(events_.get(), address, sizeof(address), 0);
    if (size != sizeof(bytes)) continue;
    uint16_t event = 0;
    uint32_t value = 0;
    std::memcpy(&event, bytes, sizeof(event));
    std::memcpy(&value, bytes + sizeof(event), sizeof(value));
    unanswered_since_.reset();
    if (event == ZMQ_EVENT_CONNECTED) {
      unanswered_since_ = Clock::now();
      descriptor_ = static_cast<int>(value);
      continue;
    }
    failure_ = event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH              ? Failure::kRefused
               : event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL       ? Failure::kClosed
               : event != ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL        ? Failure::kNone
               : value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? Failure::kMechanism
                                                                     : Failure::kProtocol;
  }
}

bool HandshakeMonitor::Unanswered(milliseconds timeout) const {
  return unanswered_since_ && Clock::now() - *unanswered_since_ > timeout;
}

// libzmq may have closed the connection meanwhile. Of another one's descriptor the answer is as good as a
// guess, and the worst of it is one more attempt.
bool HandshakeMonitor::Unacknowledged(milliseconds timeout) const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (!Unanswered(timeout) || getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  const bool none = info.tcpi_unacked > 0 && info.tcpi_bytes_acked <= 1;  // a 1 is of the connection itself
  return none && Unanswered(milliseconds(kRoundTrips * info.tcpi_rtt / 1000));
}

std::string HandshakeMonitor::Text(const KeyRing* keys) const {
  switch (failure_) {
    case Failure::kUnknown:
    case Failure::kNone:
      return "";
    case Failure::kRefused:
      return fmt::format("it refuses this task's key{} (not in its cluster.keys)",
                         keys == nullptr ? "" : " " + keys->secret_name());
    case Failure::kMechanism:
      return keys == nullptr ? "it asks for keys, and this task has none (security.keys)"
                             : "it has no keys (security.keys there)";
    case Failure::kProtocol:
      return "its answers are not those of a dtrain";
    case Failure::kClosed:
      return keys == nullptr ? "it closes the connection at once: it may ask for keys, and this task has "
                               "none (security.keys)"
                             : "its key is not the one in cluster.keys here, or it has no keys";
  }
  return "";
}

}  // namespace dtrain::net
