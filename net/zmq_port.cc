#include "net/zmq_port.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/curve.h"

namespace dtrain::net {
namespace {

constexpr int kReconnectMs = 20;  // doubles at each attempt
constexpr int kReconnectMaxMs = 1000;
constexpr int kHandshakeMs = 10'000;  // a connection that is silent this long is closed
// A host that loses power closes no connection. The kernel probes idle connections and ends those that
// acknowledge nothing; the next attempt looks the name up again.
constexpr int kKeepaliveIdleS = 10;
constexpr int kKeepaliveIntervalS = 5;
constexpr int kKeepaliveCount = 4;
constexpr int kUnacknowledgedMs = 30'000;
// How long a name that gives no connection is tried in IPv4, and then in IPv6.
constexpr milliseconds kIpv4Timeout{4000};
constexpr milliseconds kIpv6Timeout{1000};
// By so much longer each further connection waits until the peer's kernel acknowledges something, up to a
// limit.
constexpr milliseconds kAdmissionSlower{5};
constexpr milliseconds kAdmissionMax{1000};
// libzmq gives a connection up for good when its handshake was refused. It is made anew after this time.
constexpr milliseconds kRefusedPause{500};

}  // namespace

RoutingId ToRoutingId(NodeId id) {
  const uint64_t big_endian = htobe64(id);
  RoutingId bytes;
  std::memcpy(bytes.data(), &big_endian, bytes.size());
  return bytes;
}

ZmqSocket NewZmqSocket(void* zmq_context, const ZmqOptions& options, int type, int64_t max_bytes,
                       int max_received) {
  ZmqSocket socket(zmq_socket(zmq_context, type), zmq_close);
  if (socket == nullptr) {
    throw IoError("cannot open another connection: {}. Raise the limit of open files (ulimit -n).",
                  zmq_strerror(errno));
  }
  SetOption(socket.get(), ZMQ_LINGER, options.linger_ms);
  SetOption(socket.get(), ZMQ_PROBE_ROUTER, 1);  // each connection begins with an empty frame, see Take()
  SetOption(socket.get(), ZMQ_MAXMSGSIZE, max_bytes);
  SetOption(socket.get(), ZMQ_SNDHWM, options.queue_messages);
  SetOption(socket.get(), ZMQ_RCVHWM, max_received);
  SetOption(socket.get(), ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  SetOption(socket.get(), ZMQ_TCP_KEEPALIVE, 1);
  SetOption(socket.get(), ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleS);
  SetOption(socket.get(), ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalS);
  SetOption(socket.get(), ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveCount);
  SetOption(socket.get(), ZMQ_TCP_MAXRT, kUnacknowledgedMs);
  return socket;
}

void ZmqPort::Open(void* zmq_context, const ZmqOptions& options, bool through_ipv6) {
  ZmqSocket owner =
      NewZmqSocket(zmq_context, options, ZMQ_DEALER, options.max_message_bytes, options.queue_messages);
  void* const dealer = owner.get();
  if (options.keys != nullptr) {
    const std::vector<std::string> keys = options.keys->KeysOf(server);
    const bool listed = !keys.empty();  // when its keys have been removed since, nobody's handshake will do
    ConnectWithKeys(dealer, *options.keys, listed ? keys[next_key++ % keys.size()] : NewKeyPair().public_key);
  }
  auto monitor = std::make_unique<HandshakeMonitor>(zmq_context, dealer);
  const RoutingId routing_id = ToRoutingId(id);
  DT_CHECK(zmq_setsockopt(dealer, ZMQ_ROUTING_ID, routing_id.data(), routing_id.size()) == 0, errno);
  SetOption(dealer, ZMQ_IMMEDIATE, 1);
  SetOption(dealer, ZMQ_RECONNECT_IVL, kReconnectMs);
  SetOption(dealer, ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  SetOption(dealer, ZMQ_IPV6, through_ipv6 ? 1 : 0);
  DT_CHECK(zmq_connect(dealer, ZmqEndpoint(address).c_str()) == 0, AddressText(address), errno);
  handshakes = std::move(monitor);  // the old one goes before its socket
  socket = std::move(owner);
  FindSignal();
  as_ipv6 = through_ipv6;
  opened = Clock::now();
  drained = false;
  receive_timeout_ms = -1;
}

// As Open(); where too many files are open the port is tried again later.
void ZmqPort::Reopen(void* zmq_context, const ZmqOptions& options, bool through_ipv6) {
  try {
    Open(zmq_context, options, through_ipv6);
  } catch (const IoError&) {
    opened = Clock::now();
  }
}

// libzmq looks a name up in one family only. A name that gives no connection is tried in the other one.
void ZmqPort::TryOtherFamily(void* zmq_context, const ZmqOptions& options) {
  if (!address.is_name || connected_once) return;
  if (Clock::now() - opened > (as_ipv6 ? kIpv6Timeout : kIpv4Timeout)) Reopen(zmq_context, options, !as_ipv6);
}

// Where two keys are listed for the peer, the other one is tried next. A peer that is busy with strangers
// accepts connections only for moments (ConnectionGuard). A new connection asks at once, and the kernel
// repeats it more often than an old one, so a new one gets in sooner.
void ZmqPort::RetryHandshake(void* zmq_context, const ZmqOptions& options) {
  handshakes->Read();
  if (handshakes->Unacknowledged(admission_timeout)) {
    admission_timeout = std::min(admission_timeout + kAdmissionSlower, kAdmissionMax);
    Reopen(zmq_context, options, as_ipv6);
    return;
  }
  if (handshakes->Unanswered(answer_timeout)) {
    answer_timeout = std::min(2 * answer_timeout, milliseconds(kHandshakeMs));
    Reopen(zmq_context, options, as_ipv6);
    return;
  }
  const bool other_key = options.keys != nullptr && options.keys->KeysOf(server).size() > 1;
  if (!handshakes->given_up() && !(handshakes->failed() && other_key)) return;
  if (Clock::now() - opened <= kRefusedPause) return;
  last_refusal = handshakes->Text(options.keys.get());
  Reopen(zmq_context, options, as_ipv6);
}

void ZmqPort::Retry(void* zmq_context, const ZmqOptions& options) {
  TryOtherFamily(zmq_context, options);
  RetryHandshake(zmq_context, options);
}

std::string ZmqPort::WhyNotConnected(const ZmqOptions& options) {
  handshakes->Read();
  if (handshakes->succeeded()) last_refusal.clear();
  const std::string why = handshakes->Text(options.keys.get());
  return why.empty() ? last_refusal : why;
}

void ZmqPort::FindSignal() {
  size_t size = sizeof(signal_fd);
  DT_CHECK(zmq_getsockopt(socket.get(), ZMQ_FD, &signal_fd, &size) == 0, errno);
}

}  // namespace dtrain::net
