#include "net/zmq_transport.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/curve.h"
#include "net/handshake_monitor.h"
#include "net/tcp.h"

namespace dtrain::net {

// ZmqChannel: a Channel over ZeroMQ. Where it binds, one ROUTER serves all peers. Each conversation made by
// Connect() is a DEALER of its own, whose routing id is the NodeId. docs/wire.md describes the frames. Owner:
// the caller of ZmqTransport::NewChannel(). Thread: one.
class ZmqChannel final : public Channel {
 public:
  ZmqChannel(void* zmq_context, const ZmqOptions& options);

  std::string Bind(const std::string& address) override;
  std::string BindDescriptor(int listening_fd) override;
  // Throws UserError for a malformed address and for port 0. A name is looked up in IPv4; while that gives no
  // connection, it is tried in IPv6 from time to time.
  void Connect(NodeId id, const std::string& address) override;
  void Disconnect(NodeId id) override;
  SendResult Send(NodeId peer, Message& message) override;
  // Returns kTimeout early when a signal handler has run, so that the caller can check its flags.
  ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) override;
  ChannelStats stats() const override { return stats_; }
  uint64_t Connections(NodeId id) const override;
  void SetKnown(NodeId id, bool known) override;
  std::string WhyNotConnected(NodeId id) override;
  bool MayActAs(uint32_t key, std::string_view task) const override {
    return options_.keys == nullptr || options_.keys->IsOf(key, task);
  }

 private:
  using Socket = std::unique_ptr<void, int (*)(void*)>;

  // Port: one ZeroMQ socket, the ROUTER or the DEALER of a conversation.
  struct Port {
    Socket socket{nullptr, zmq_close};
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
    milliseconds answer_timeout{1000};  // of a handshake; doubles at each attempt
    std::unique_ptr<HandshakeMonitor> handshakes;
    std::string last_refusal;  // why the connection before this one did not come about
    std::string server;        // with keys: whose listed key the peer has
    size_t next_key = 0;       // the one to try next, modulo their number: two while a key is being changed
  };

  enum class Taken { kMessage, kNothing, kDropped, kInterrupted, kConnected };

  // The descriptors of a known conversation's connections, the one for heartbeats last; -1: not seen yet.
  using Descriptors = std::array<int, 2>;

  Socket NewSocket(int type, int64_t max_bytes, int max_received) const;
  void OpenDealer(Port& port, bool as_ipv6);
  void ReopenDealer(Port& port, bool as_ipv6);
  void TryOtherFamily(Port& port);
  void RetryHandshake(Port& port);
  Port* FindPort(NodeId peer);
  SendResult SendFrames(Port& port, NodeId peer, Message& message);
  Taken Take(Port& port, int flags, NodeId* from, Message* message);
  Taken TakeFromAny(NodeId* from, Message* message);
  static bool EndsReceive(Taken taken);
  bool IsFromPeer(Frame& part, bool first);
  ReceiveResult ReceiveFromOne(Port& port, TimePoint deadline, NodeId* from, Message* message);
  ReceiveResult ReceiveFromAny(TimePoint deadline, NodeId* from, Message* message);
  bool WaitForSignal(int timeout_ms);

  void* const context_;
  const ZmqOptions options_;
  std::vector<Port> ports_;
  size_t next_port_ = 0;  // where the next look begins, so that a busy port does not starve the others
  std::vector<pollfd> poll_items_;
  Frame routing_id_;  // of the message that is being received; a member to reuse its storage
  ChannelStats stats_;
  std::unordered_map<NodeId, Descriptors> known_;  // by id without its lowest bit
  struct {
    NodeId id = 0;
    int descriptor = -1;
  } last_;                                  // the sender of the ROUTER's last message
  std::unique_ptr<ConnectionGuard> guard_;  // of the ROUTER; it goes before the socket
};

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
// libzmq gives a connection up for good when its handshake was refused. It is made anew after this time.
constexpr milliseconds kRefusedPause{500};
// libzmq's thread stops reading from a connection while so many of its messages wait for the ROUTER's thread;
// the rest waits in the kernel and at the sender. So what whole messages of strangers take does not depend on
// when the threads of this process get processor time. A small message keeps the buffer alive that it was
// read into: 8 KiB, and 10 KiB of libzmq's counters. With libzmq's other memory, 33 KiB, a connection takes
// at most 68 KiB, as long as its messages are one frame of at most 8 KiB.
constexpr int kWaitingRequests = 2;
// Three for each connection of a task and of its heartbeats, and as many while one is made anew: libzmq
// closes sockets later. Its own limit of 1,023 is reached with 85 ps. Each one costs 12 bytes.
constexpr int kMaxSockets = 16384;

zmq_msg_t* Native(Frame& frame) { return static_cast<zmq_msg_t*>(frame.native()); }

template <typename Value>
void Set(void* socket, int option, Value value) {
  DT_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0, option, value, errno);
}

using RoutingId = std::array<unsigned char, 8>;

RoutingId ToRoutingId(NodeId id) {
  const uint64_t big_endian = htobe64(id);
  RoutingId bytes;
  std::memcpy(bytes.data(), &big_endian, bytes.size());
  return bytes;
}

NodeId FromRoutingId(const Frame& frame) {
  uint64_t big_endian;
  std::memcpy(&big_endian, frame.data(), sizeof(big_endian));
  return be64toh(big_endian);
}

// A signal may interrupt any call to libzmq, but a message that was begun must be sent completely.
bool SendFrame(void* socket, Frame& frame, int flags) {
  while (zmq_msg_send(Native(frame), socket, flags | ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

bool SendBytes(void* socket, const RoutingId& bytes) {
  while (zmq_send(socket, bytes.data(), bytes.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

void ReceiveRest(void* socket, Frame& frame) {
  while (zmq_msg_recv(Native(frame), socket, 0) < 0) DT_CHECK(errno == EINTR, errno);
}

// The number of the sender's key, as the ZAP handler gave it; 0: none.
uint32_t KeyOf(Frame& frame) {
  const char* const user = zmq_msg_gets(Native(frame), "User-Id");
  return user == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(user, nullptr, 10));
}

// libzmq's decoder leaves frames of up to 8 KB inside its receive buffer, at any address.
void Align(Frame& frame) {
  if (reinterpret_cast<uintptr_t>(frame.data()) % kHeaderAlignment != 0) {
    frame = Frame::Copy(frame.data(), frame.size());
  }
}

}  // namespace

ZmqChannel::ZmqChannel(void* zmq_context, const ZmqOptions& options)
    : context_(zmq_context), options_(options) {}

ZmqChannel::Socket ZmqChannel::NewSocket(int type, int64_t max_bytes, int max_received) const {
  Socket socket(zmq_socket(context_, type), zmq_close);
  if (socket == nullptr) {
    throw IoError("cannot open another connection: {}. Raise the limit of open files (ulimit -n).",
                  zmq_strerror(errno));
  }
  Set(socket.get(), ZMQ_LINGER, options_.linger_ms);
  Set(socket.get(), ZMQ_PROBE_ROUTER, 1);  // each connection begins with an empty frame, see Take()
  Set(socket.get(), ZMQ_MAXMSGSIZE, max_bytes);
  Set(socket.get(), ZMQ_SNDHWM, options_.queue_messages);
  Set(socket.get(), ZMQ_RCVHWM, max_received);
  Set(socket.get(), ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  Set(socket.get(), ZMQ_TCP_KEEPALIVE, 1);
  Set(socket.get(), ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdleS);
  Set(socket.get(), ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveIntervalS);
  Set(socket.get(), ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveCount);
  Set(socket.get(), ZMQ_TCP_MAXRT, kUnacknowledgedMs);
  return socket;
}

std::string ZmqChannel::Bind(const std::string& address) { return BindDescriptor(Listen(address)); }

std::string ZmqChannel::BindDescriptor(int listening_fd) {
  for (const Port& port : ports_) DT_CHECK(!port.is_router);
  const std::string address = ListeningAddress(listening_fd);
  fcntl(listening_fd, F_SETFL, fcntl(listening_fd, F_GETFL) | O_NONBLOCK);
  fcntl(listening_fd, F_SETFD, FD_CLOEXEC);
  Port port;
  port.is_router = true;
  port.socket = NewSocket(ZMQ_ROUTER, options_.max_request_bytes, kWaitingRequests);
  void* const socket = port.socket.get();
  Set(socket, ZMQ_ROUTER_MANDATORY, 1);
  Set(socket, ZMQ_ROUTER_HANDOVER, 1);
  // A domain without a handler has one effect: libzmq refuses ZMTP 1 and 2. Any first byte of a stranger is a
  // valid greeting of theirs, and libzmq aborts on it if the socket closes at that moment.
  DT_CHECK(zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "dtrain", 6) == 0, errno);
  if (options_.keys != nullptr) ListenWithKeys(socket, *options_.keys);
  Set(socket, ZMQ_IPV6, 1);
  Set(socket, ZMQ_USE_FD, listening_fd);
  if (options_.guard)
    guard_ = std::make_unique<ConnectionGuard>(context_, socket, listening_fd, *options_.guard);
  DT_CHECK(zmq_bind(socket, ZmqEndpoint(ParseAddress(address)).c_str()) == 0, address, errno);
  size_t size = sizeof(port.signal_fd);
  DT_CHECK(zmq_getsockopt(socket, ZMQ_FD, &port.signal_fd, &size) == 0, errno);
  ports_.push_back(std::move(port));
  return address;
}

void ZmqChannel::Connect(NodeId id, const std::string& address) {
  DT_CHECK(id >> 56 != 0, id);
  for (const Port& port : ports_) DT_CHECK(port.is_router || port.id != id, id);
  Port port;
  port.id = id;
  port.address = ParseAddress(address);
  if (port.address.port == 0 && port.address.path.empty())
    throw UserError("{}: cannot connect to port 0. Name the port that it listens at.", address);
  if (options_.keys != nullptr) {
    const auto server = options_.servers.find(address);
    DT_CHECK(server != options_.servers.end(), address);
    port.server = server->second;
    if (options_.keys->KeysOf(port.server).empty()) {
      throw UserError(
          "{}: cluster.keys has no key of {}. Run dtrain keygen again, and give this machine the "
          "new list.",
          address, port.server);
    }
  }
  OpenDealer(port, port.address.is_ipv6);
  ports_.push_back(std::move(port));
}

// Throws IoError, and the port stays as it was, when too many files are open.
void ZmqChannel::OpenDealer(Port& port, bool as_ipv6) {
  Socket owner = NewSocket(ZMQ_DEALER, options_.max_message_bytes, options_.queue_messages);
  void* const socket = owner.get();
  if (options_.keys != nullptr) {
    const std::vector<std::string> keys = options_.keys->KeysOf(port.server);
    const bool listed = !keys.empty();  // when its keys have been removed since, nobody's handshake will do
    ConnectWithKeys(socket, *options_.keys,
                    listed ? keys[port.next_key++ % keys.size()] : NewKeyPair().public_key);
  }
  auto handshakes = std::make_unique<HandshakeMonitor>(context_, socket);
  const RoutingId routing_id = ToRoutingId(port.id);
  DT_CHECK(zmq_setsockopt(socket, ZMQ_ROUTING_ID, routing_id.data(), routing_id.size()) == 0, errno);
  Set(socket, ZMQ_IMMEDIATE, 1);
  Set(socket, ZMQ_RECONNECT_IVL, kReconnectMs);
  Set(socket, ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  Set(socket, ZMQ_IPV6, as_ipv6 ? 1 : 0);
  DT_CHECK(zmq_connect(socket, ZmqEndpoint(port.address).c_str()) == 0, AddressText(port.address), errno);
  size_t size = sizeof(port.signal_fd);
  DT_CHECK(zmq_getsockopt(socket, ZMQ_FD, &port.signal_fd, &size) == 0, errno);
  port.handshakes = std::move(handshakes);  // the old one goes before its socket
  port.socket = std::move(owner);
  port.as_ipv6 = as_ipv6;
  port.opened = Clock::now();
  port.drained = false;
  port.receive_timeout_ms = -1;
}

// As OpenDealer(); where too many files are open the port is tried again later.
void ZmqChannel::ReopenDealer(Port& port, bool as_ipv6) {
  try {
    OpenDealer(port, as_ipv6);
  } catch (const IoError&) {
    port.opened = Clock::now();
  }
}

// libzmq looks a name up in one family only. A name that gives no connection is tried in the other one.
void ZmqChannel::TryOtherFamily(Port& port) {
  if (!port.address.is_name || port.connected_once) return;
  if (Clock::now() - port.opened > (port.as_ipv6 ? kIpv6Timeout : kIpv4Timeout))
    ReopenDealer(port, !port.as_ipv6);
}

// Where two keys are listed for the peer, the other one is tried next. A peer that is busy with strangers
// accepts connections only for moments (ConnectionGuard). The kernel repeats a new connection more often than
// an old one, so a new one gets in sooner.
void ZmqChannel::RetryHandshake(Port& port) {
  port.handshakes->Read();
  if (port.handshakes->Unanswered(port.answer_timeout)) {
    port.answer_timeout = std::min(2 * port.answer_timeout, milliseconds(kHandshakeMs));
    ReopenDealer(port, port.as_ipv6);
    return;
  }
  const bool other_key = options_.keys != nullptr && options_.keys->KeysOf(port.server).size() > 1;
  if (!port.handshakes->given_up() && !(port.handshakes->failed() && other_key)) return;
  if (Clock::now() - port.opened <= kRefusedPause) return;
  port.last_refusal = port.handshakes->Text(options_.keys.get());
  ReopenDealer(port, port.as_ipv6);
}

std::string ZmqChannel::WhyNotConnected(NodeId id) {
  for (Port& port : ports_) {
    if (port.is_router || port.id != id) continue;
    port.handshakes->Read();
    if (port.handshakes->succeeded()) port.last_refusal.clear();
    const std::string why = port.handshakes->Text(options_.keys.get());
    return why.empty() ? port.last_refusal : why;
  }
  return "";
}

void ZmqChannel::Disconnect(NodeId id) {
  const auto same = [id](const Port& port) { return !port.is_router && port.id == id; };
  ports_.erase(std::remove_if(ports_.begin(), ports_.end(), same), ports_.end());
}

uint64_t ZmqChannel::Connections(NodeId id) const {
  for (const Port& port : ports_) {
    if (!port.is_router && port.id == id) return port.connections;
  }
  return 0;
}

ZmqChannel::Port* ZmqChannel::FindPort(NodeId peer) {
  Port* router = nullptr;
  for (Port& port : ports_) {
    if (port.is_router) {
      router = &port;
    } else if (port.id == peer) {
      return &port;
    }
  }
  return router;
}

SendResult ZmqChannel::Send(NodeId peer, Message& message) {
  Port* const port = FindPort(peer);
  if (port == nullptr) return SendResult::kGone;
  DT_CHECK(!message.header.empty());
  const uint64_t bytes = message.header.size() + message.payload.size();
  const SendResult result = SendFrames(*port, peer, message);
  port->drained = false;  // libzmq may have noticed arrivals meanwhile, without another signal
  if (result == SendResult::kSent) {
    stats_.bytes_sent += bytes;
    port->connected_once = true;
  } else if (!port->is_router) {
    TryOtherFamily(*port);
    RetryHandshake(*port);
  }
  return result;
}

SendResult ZmqChannel::SendFrames(Port& port, NodeId peer, Message& message) {
  void* const socket = port.socket.get();
  const int more = message.payload.empty() ? 0 : ZMQ_SNDMORE;
  if (port.is_router && !SendBytes(socket, ToRoutingId(peer))) {
    DT_CHECK(errno == EAGAIN || errno == EHOSTUNREACH, errno);
    return errno == EAGAIN ? SendResult::kFull : SendResult::kGone;
  }
  if (!SendFrame(socket, message.header, more)) {
    DT_CHECK(errno == EAGAIN && !port.is_router, errno);
    return SendResult::kFull;
  }
  // libzmq accepts the other frames after the first. Only a connection that breaks at this moment loses the
  // message, as it loses any message in flight.
  if (more != 0 && !SendFrame(socket, message.payload, 0)) DT_CHECK(errno == EAGAIN, errno);
  message.payload = Frame();
  return SendResult::kSent;
}

ReceiveResult ZmqChannel::Receive(TimePoint deadline, NodeId* from, Message* message) {
  const bool one = ports_.size() == 1;
  return one ? ReceiveFromOne(ports_[0], deadline, from, message) : ReceiveFromAny(deadline, from, message);
}

// libzmq checks its queue before it waits, so a busy channel makes no system call here.
ReceiveResult ZmqChannel::ReceiveFromOne(Port& port, TimePoint deadline, NodeId* from, Message* message) {
  while (true) {
    const int wait_ms = MillisecondsUntil(deadline, Clock::now());
    if (wait_ms != 0 && wait_ms != port.receive_timeout_ms) {
      Set(port.socket.get(), ZMQ_RCVTIMEO, wait_ms);
      port.receive_timeout_ms = wait_ms;
    }
    const Taken taken = Take(port, wait_ms == 0 ? ZMQ_DONTWAIT : 0, from, message);
    if (taken == Taken::kMessage) return ReceiveResult::kMessage;
    if (EndsReceive(taken) || wait_ms == 0) return ReceiveResult::kTimeout;
  }
}

ReceiveResult ZmqChannel::ReceiveFromAny(TimePoint deadline, NodeId* from, Message* message) {
  while (true) {
    const Taken taken = TakeFromAny(from, message);
    if (taken == Taken::kMessage) return ReceiveResult::kMessage;
    if (EndsReceive(taken)) return ReceiveResult::kTimeout;
    const int wait_ms = MillisecondsUntil(deadline, Clock::now());
    if (taken == Taken::kDropped && wait_ms != 0) continue;
    if (!WaitForSignal(wait_ms)) return ReceiveResult::kTimeout;
  }
}

ZmqChannel::Taken ZmqChannel::TakeFromAny(NodeId* from, Message* message) {
  const size_t count = ports_.size();
  Taken result = Taken::kNothing;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (next_port_ + i) % count;
    Port& port = ports_[index];
    if (port.drained) continue;
    const Taken taken = Take(port, ZMQ_DONTWAIT, from, message);
    port.drained = taken == Taken::kNothing;
    if (taken == Taken::kMessage) next_port_ = index + 1;
    if (taken == Taken::kMessage || EndsReceive(taken)) return taken;
    if (taken == Taken::kDropped) result = taken;
  }
  return result;
}

// Returns false when the time has passed or a signal handler has run.
bool ZmqChannel::WaitForSignal(int timeout_ms) {
  poll_items_.resize(ports_.size());
  for (size_t i = 0; i < ports_.size(); ++i) poll_items_[i] = {ports_[i].signal_fd, POLLIN, 0};
  if (poll(poll_items_.data(), poll_items_.size(), timeout_ms) <= 0) return false;
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (poll_items_[i].revents != 0) ports_[i].drained = false;
  }
  return true;
}

// Whether Receive() must return early although there is no message.
bool ZmqChannel::EndsReceive(Taken taken) {
  return taken == Taken::kInterrupted || taken == Taken::kConnected;
}

// Reads one message. Anything other than [routing id of 8 bytes,] header [, payload] is dropped and counted,
// except the empty frame that announces a new connection.
ZmqChannel::Taken ZmqChannel::Take(Port& port, int flags, NodeId* from, Message* message) {
  Frame excess;
  Frame* const slots[] = {&routing_id_, &message->header, &message->payload, &excess};
  const size_t first = port.is_router ? 0 : 1;
  if (zmq_msg_recv(Native(*slots[first]), port.socket.get(), flags) < 0) {
    DT_CHECK(errno == EAGAIN || errno == EINTR, errno);
    if (errno == EAGAIN && port.is_router && guard_) guard_->RanDry();
    return errno == EINTR ? Taken::kInterrupted : Taken::kNothing;
  }
  size_t last = first;
  while (zmq_msg_more(Native(*slots[last]))) {
    last = std::min<size_t>(last + 1, 3);
    ReceiveRest(port.socket.get(), *slots[last]);
  }
  if (!port.is_router && last == 1 && message->header.empty()) {
    return ++port.connections == 1 ? Taken::kDropped : Taken::kConnected;
  }
  if (last < 2) message->payload = Frame();
  const bool first_of_connection = last == 1 && message->header.empty();
  const bool from_peer = !port.is_router || IsFromPeer(*slots[last], first_of_connection);
  if (from_peer && port.is_router && first_of_connection) return Taken::kDropped;
  if (!from_peer || last < 1 || last > 2 || message->header.empty()) {
    ++stats_.frames_dropped;
    return Taken::kDropped;
  }
  message->key = port.is_router && options_.keys != nullptr ? KeyOf(message->header) : 0;
  // A key that was removed from the list ends nothing, but what its owner says is no longer heard.
  if (port.is_router && options_.keys != nullptr && !options_.keys->Listed(message->key)) {
    ++stats_.frames_dropped;
    return Taken::kDropped;
  }
  Align(message->header);
  *from = port.is_router ? FromRoutingId(routing_id_) : port.id;
  stats_.bytes_received += message->header.size() + message->payload.size();
  return Taken::kMessage;
}

// Whether the ROUTER's message has the id of a conversation that a peer may have made: nobody takes the name
// of one that this channel has made. Tells the guard of the message; `part`: one of its frames; `first`: the
// connection begins with it.
bool ZmqChannel::IsFromPeer(Frame& part, bool first) {
  const bool well_formed = routing_id_.size() == sizeof(NodeId);
  const NodeId id = well_formed ? FromRoutingId(routing_id_) : 0;
  if (guard_) {
    const int fd = zmq_msg_get(Native(part), ZMQ_SRCFD);
    const auto known = known_.find(id & ~NodeId{1});
    if (known != known_.end()) known->second[id & 1] = fd;
    guard_->Received(fd, known != known_.end(), first);
    last_ = {id, fd};
  }
  return well_formed && std::none_of(ports_.begin(), ports_.end(),
                                     [id](const Port& port) { return !port.is_router && port.id == id; });
}

void ZmqChannel::SetKnown(NodeId id, bool known) {
  if (!guard_) return;
  if (known) {
    Descriptors none{-1, -1};
    if (last_.id == id) none[id & 1] = last_.descriptor;
    if (known_.emplace(id & ~NodeId{1}, none).second && last_.id == id)
      guard_->SetKnown(last_.descriptor, true);
    return;
  }
  const auto found = known_.find(id & ~NodeId{1});
  if (found == known_.end()) return;
  for (const int fd : found->second) guard_->SetKnown(fd, false);
  known_.erase(found);
}

ZmqTransport::ZmqTransport(const ZmqOptions& options) : options_(options), context_(zmq_ctx_new()) {
  DT_CHECK(context_ != nullptr, errno);
  DT_CHECK(zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, kMaxSockets) == 0, errno);
  DT_CHECK(zmq_ctx_set(context_, ZMQ_IO_THREADS, options_.io_threads) == 0, options_.io_threads);
  if (options_.keys != nullptr) zap_handler_ = std::make_unique<ZapHandler>(context_, options_.keys);
}

ZmqTransport::~ZmqTransport() {
  while (zmq_ctx_term(context_) != 0) DT_CHECK(errno == EINTR, errno);
}

std::unique_ptr<Channel> ZmqTransport::NewChannel() {
  return std::make_unique<ZmqChannel>(context_, options_);
}

}  // namespace dtrain::net
