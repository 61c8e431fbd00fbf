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
#include "net/tcp.h"
#include "net/zmq_port.h"

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
  // Only while it runs are messages held.
  void Serve(TimePoint deadline, const MessageHandler& handler) override;
  ChannelStats stats() const override { return stats_; }
  uint64_t Connections(NodeId id) const override;
  void SetKnown(NodeId id, bool known) override;
  std::string WhyNotConnected(NodeId id) override;
  bool MayActAs(uint32_t key, std::string_view task) const override {
    return options_.keys == nullptr || options_.keys->IsOf(key, task);
  }

 private:
  enum class Taken { kMessage, kNothing, kDropped, kInterrupted, kConnected };

  // Held: a message that libzmq has not got yet.
  struct Held {
    NodeId peer;
    Message message;
  };

  // Sender: of a message that the ROUTER has received.
  struct Sender {
    NodeId id = 0;
    int descriptor = -1;
  };

  // The descriptors of a known conversation's connections, the one for heartbeats last; -1: not seen yet.
  using Descriptors = std::array<int, 2>;

  ZmqPort* FindPort(NodeId peer);
  SendResult SendFrames(ZmqPort& port, NodeId peer, Message& message);
  void Flush() override;
  bool MayHold(NodeId peer, const Message& message) const;
  void SendHeld();
  void SendOrKeep(Held& held);
  bool Keeps(NodeId peer) const;
  Taken Take(ZmqPort& port, int flags, NodeId* from, Message* message);
  Taken TakeNext(NodeId* from, Message* message);
  static bool EndsReceive(Taken taken);
  bool IsFromPeer(Frame& part, bool first);
  bool TakeFromOne(ZmqPort& port, TimePoint deadline, NodeId* from, Message* message, bool* at_once);
  bool TakeFromAny(TimePoint deadline, NodeId* from, Message* message, bool* at_once);
  void LookAhead();
  bool WaitForSignal(int timeout_ms);

  void* const context_;
  const ZmqOptions options_;
  std::vector<ZmqPort> ports_;
  size_t next_port_ = 0;  // where the next look begins, so that a busy port does not starve the others
  std::vector<pollfd> poll_items_;
  bool serves_ = false;
  std::vector<Held> held_;  // in order
  TimePoint held_since_;
  std::vector<Held> kept_;         // in order: were held, but their peers had no room
  std::vector<Held> sending_;      // of SendHeld(), to reuse its storage
  Taken ahead_ = Taken::kNothing;  // what the next Receive() begins with; kMessage: with next_
  struct {
    NodeId from = 0;
    Message message;
    Sender sender;
  } next_;
  TimePoint received_;  // then: when
  Frame routing_id_;    // of the message that is being received; a member to reuse its storage
  ChannelStats stats_;
  std::unordered_map<NodeId, Descriptors> known_;  // by id without its lowest bit
  Sender last_;                                    // of the message that Receive() has returned
  std::unique_ptr<ConnectionGuard> guard_;         // of the ROUTER; it goes before the socket
};

namespace {

// libzmq's thread stops reading from a connection while so many of its messages wait for the ROUTER's thread;
// the rest waits in the kernel and at the sender. So what whole messages of strangers take does not depend on
// when the threads of this process get processor time. A small message keeps the buffer alive that it was
// read into: 8 KiB, and 10 KiB of libzmq's counters. With libzmq's other memory, 33 KiB, a connection takes
// at most 177 KiB, as long as its messages are one frame of at most 8 KiB. With two, libzmq's thread would
// sleep and be woken for nearly each message of a task; 64 are a tenth faster. Strangers and tasks have
// the same number: libzmq 4.3.4 must not be told another one while a connection ends.
constexpr int kWaitingRequests = 8;
// A message was there if the call that would have waited for it takes less.
constexpr std::chrono::microseconds kNoWait{3};
// The longest time for which a message is held.
constexpr std::chrono::microseconds kMaxHeld{100};
// So many messages are held at most, or kept for peers that have no room: peers that do not read take no more
// than 64 KiB in all.
constexpr size_t kMaxKept = 64;
// Three for each connection of a task and of its heartbeats, and as many while one is made anew: libzmq
// closes sockets later. Its own limit of 1,023 is reached with 85 ps. Each one costs 12 bytes.
constexpr int kMaxSockets = 16384;

zmq_msg_t* Native(Frame& frame) { return static_cast<zmq_msg_t*>(frame.native()); }

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

std::string ZmqChannel::Bind(const std::string& address) { return BindDescriptor(Listen(address)); }

std::string ZmqChannel::BindDescriptor(int listening_fd) {
  for (const ZmqPort& port : ports_) DT_CHECK(!port.is_router);
  const std::string address = ListeningAddress(listening_fd);
  fcntl(listening_fd, F_SETFL, fcntl(listening_fd, F_GETFL) | O_NONBLOCK);
  fcntl(listening_fd, F_SETFD, FD_CLOEXEC);
  ZmqPort port;
  port.is_router = true;
  const bool strangers_get_in = options_.guard && options_.keys == nullptr;
  port.socket = NewZmqSocket(context_, options_, ZMQ_ROUTER, options_.max_request_bytes,
                             strangers_get_in ? kWaitingRequests : options_.queue_messages);
  void* const socket = port.socket.get();
  SetOption(socket, ZMQ_ROUTER_MANDATORY, 1);
  SetOption(socket, ZMQ_ROUTER_HANDOVER, 1);
  // A domain without a handler has one effect: libzmq refuses ZMTP 1 and 2.
  DT_CHECK(zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, "dtrain", 6) == 0, errno);
  if (options_.keys != nullptr) ListenWithKeys(socket, *options_.keys);
  SetOption(socket, ZMQ_IPV6, 1);
  SetOption(socket, ZMQ_USE_FD, listening_fd);
  if (options_.guard)
    guard_ = std::make_unique<ConnectionGuard>(context_, socket, listening_fd, *options_.guard);
  DT_CHECK(zmq_bind(socket, ZmqEndpoint(ParseAddress(address)).c_str()) == 0, address, errno);
  port.FindSignal();
  ports_.push_back(std::move(port));
  return address;
}

void ZmqChannel::Connect(NodeId id, const std::string& address) {
  DT_CHECK(id >> 56 != 0, id);
  for (const ZmqPort& port : ports_) DT_CHECK(port.is_router || port.id != id, id);
  ZmqPort port;
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
  port.Open(context_, options_, port.address.is_ipv6);
  ports_.push_back(std::move(port));
}

std::string ZmqChannel::WhyNotConnected(NodeId id) {
  for (ZmqPort& port : ports_) {
    if (!port.is_router && port.id == id) return port.WhyNotConnected(options_);
  }
  return "";
}

void ZmqChannel::Disconnect(NodeId id) {
  SendHeld();
  if (ahead_ == Taken::kMessage && next_.from == id) ahead_ = Taken::kNothing;
  const auto same = [id](const ZmqPort& port) { return !port.is_router && port.id == id; };
  ports_.erase(std::remove_if(ports_.begin(), ports_.end(), same), ports_.end());
}

uint64_t ZmqChannel::Connections(NodeId id) const {
  for (const ZmqPort& port : ports_) {
    if (!port.is_router && port.id == id) return port.connections;
  }
  return 0;
}

ZmqPort* ZmqChannel::FindPort(NodeId peer) {
  ZmqPort* router = nullptr;
  for (ZmqPort& port : ports_) {
    if (port.is_router) {
      router = &port;
    } else if (port.id == peer) {
      return &port;
    }
  }
  return router;
}

SendResult ZmqChannel::Send(NodeId peer, Message& message) {
  ZmqPort* const port = FindPort(peer);
  if (port == nullptr) return SendResult::kGone;
  DT_CHECK(!message.header.empty());
  const uint64_t bytes = message.header.size() + message.payload.size();
  if (MayHold(peer, message)) {
    if (held_.empty()) held_since_ = received_;
    held_.push_back({peer, std::move(message)});
    message = Message();
    stats_.bytes_sent += bytes;
    return SendResult::kSent;
  }
  SendHeld();
  const SendResult result = Keeps(peer) ? SendResult::kFull : SendFrames(*port, peer, message);
  port->drained = false;  // libzmq may have noticed arrivals meanwhile, without another signal
  if (result == SendResult::kSent) {
    stats_.bytes_sent += bytes;
    port->connected_once = true;
  } else if (!port->is_router) {
    port->Retry(context_, options_);
  }
  return result;
}

// libzmq's thread is woken for the first of several messages, and writes those that it then finds with one
// call. So Serve() lets answers wait for those to the messages behind.
bool ZmqChannel::MayHold(NodeId peer, const Message& message) const {
  if (!serves_ || ahead_ != Taken::kMessage || held_.size() + 1 >= kBatchMessages) return false;
  if (held_.size() + kept_.size() >= kMaxKept || Keeps(peer)) return false;
  if (message.header.size() + message.payload.size() > kShortBytes) return false;
  const TimePoint now = Clock::now();
  return now - received_ < kAtOnce && (held_.empty() || now - held_since_ < kMaxHeld);
}

// Messages that a peer has no room for are kept, with those behind them, and the other peers' go on.
void ZmqChannel::SendHeld() {
  if (!kept_.empty()) {
    sending_.swap(kept_);
    for (Held& kept : sending_) SendOrKeep(kept);
    sending_.clear();
  }
  for (Held& held : held_) SendOrKeep(held);
  held_.clear();
}

void ZmqChannel::SendOrKeep(Held& held) {
  ZmqPort* const port = FindPort(held.peer);
  if (port != nullptr) port->drained = false;
  if (Keeps(held.peer) ||
      (port != nullptr && SendFrames(*port, held.peer, held.message) == SendResult::kFull)) {
    kept_.push_back(std::move(held));
  }
}

bool ZmqChannel::Keeps(NodeId peer) const {
  return std::any_of(kept_.begin(), kept_.end(), [peer](const Held& kept) { return kept.peer == peer; });
}

SendResult ZmqChannel::SendFrames(ZmqPort& port, NodeId peer, Message& message) {
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
  if (more != 0 && !SendFrame(socket, message.payload, 0)) {
    DT_CHECK(errno == EAGAIN, errno);
    message.payload = Frame();
  }
  return SendResult::kSent;
}

ReceiveResult ZmqChannel::Receive(TimePoint deadline, NodeId* from, Message* message) {
  last_ = {};
  bool at_once = ahead_ != Taken::kNothing;
  if (at_once && EndsReceive(std::exchange(ahead_, Taken::kNothing))) {
    SendHeld();
    return ReceiveResult::kTimeout;
  }
  if (at_once) {
    *from = next_.from;
    *message = std::move(next_.message);
    last_ = next_.sender;
  } else if (!(ports_.size() == 1 ? TakeFromOne(ports_[0], deadline, from, message, &at_once)
                                  : TakeFromAny(deadline, from, message, &at_once))) {
    return ReceiveResult::kTimeout;
  }
  if (at_once && serves_) LookAhead();
  return ReceiveResult::kMessage;
}

void ZmqChannel::Serve(TimePoint deadline, const MessageHandler& handler) {
  serves_ = true;
  Channel::Serve(deadline, handler);
}

void ZmqChannel::Flush() {
  serves_ = false;
  SendHeld();
}

// A message that was there without a wait may have others behind it. What was found is next_ or the end of
// the next Receive().
void ZmqChannel::LookAhead() {
  const Sender sender = std::exchange(last_, {});
  ahead_ = ports_.size() == 1 ? Take(ports_[0], ZMQ_DONTWAIT, &next_.from, &next_.message)
                              : TakeNext(&next_.from, &next_.message);
  if (ahead_ == Taken::kDropped) ahead_ = Taken::kNothing;
  next_.sender = std::exchange(last_, sender);
  received_ = Clock::now();
  if (!held_.empty() && received_ - held_since_ > kMaxHeld) SendHeld();
}

// libzmq checks its queue before it waits, so a busy channel makes no system call here. While the guard asks
// whether the queue is empty, the channel looks before it waits. `at_once`: whether the message was there;
// only Serve() asks.
bool ZmqChannel::TakeFromOne(ZmqPort& port, TimePoint deadline, NodeId* from, Message* message,
                             bool* at_once) {
  SendHeld();
  while (true) {
    const TimePoint now = Clock::now();
    const int wait_ms = MillisecondsUntil(deadline, now);
    Taken taken = Taken::kNothing;
    if (wait_ms == 0 || (guard_ && guard_->AsksIfDry())) taken = Take(port, ZMQ_DONTWAIT, from, message);
    if (wait_ms != 0 && taken == Taken::kNothing) {
      if (wait_ms != port.receive_timeout_ms) {
        SetOption(port.socket.get(), ZMQ_RCVTIMEO, wait_ms);
        port.receive_timeout_ms = wait_ms;
      }
      taken = Take(port, 0, from, message);
    }
    *at_once = serves_ && taken == Taken::kMessage && Clock::now() - now < kNoWait;
    if (taken == Taken::kMessage) return true;
    if (EndsReceive(taken) || wait_ms == 0) return false;
  }
}

bool ZmqChannel::TakeFromAny(TimePoint deadline, NodeId* from, Message* message, bool* at_once) {
  SendHeld();
  for (*at_once = true;; *at_once = false) {
    const Taken taken = TakeNext(from, message);
    if (taken == Taken::kMessage) return true;
    if (EndsReceive(taken)) return false;
    const int wait_ms = MillisecondsUntil(deadline, Clock::now());
    if (taken == Taken::kDropped && wait_ms != 0) continue;
    if (!WaitForSignal(wait_ms)) return false;
  }
}

ZmqChannel::Taken ZmqChannel::TakeNext(NodeId* from, Message* message) {
  const size_t count = ports_.size();
  Taken result = Taken::kNothing;
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (next_port_ + i) % count;
    ZmqPort& port = ports_[index];
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
ZmqChannel::Taken ZmqChannel::Take(ZmqPort& port, int flags, NodeId* from, Message* message) {
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
  const size_t header_bytes = message->header.size();
  if (!port.is_router && last == 1 && header_bytes == 0) {
    return ++port.connections == 1 ? Taken::kDropped : Taken::kConnected;
  }
  if (last < 2 && !message->payload.empty()) message->payload = Frame();
  const bool first_of_connection = last == 1 && header_bytes == 0;
  const bool from_peer = !port.is_router || IsFromPeer(*slots[last], first_of_connection);
  if (from_peer && port.is_router && first_of_connection) return Taken::kDropped;
  if (!from_peer || last < 1 || last > 2 || header_bytes == 0) {
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
  stats_.bytes_received += header_bytes + message->payload.size();
  return Taken::kMessage;
}

// Whether the ROUTER's message has the id of a conversation that a peer may have made: nobody takes the name
// of one that this channel has made. Tells the guard of the message; `part`: one of its frames; `first`: the
// connection begins with it. Only then is a known peer's descriptor another one, and libzmq takes long to
// find it: as a text, by name.
bool ZmqChannel::IsFromPeer(Frame& part, bool first) {
  const bool well_formed = routing_id_.size() == sizeof(NodeId);
  const NodeId id = well_formed ? FromRoutingId(routing_id_) : 0;
  if (guard_) {
    const auto known = known_.find(id & ~NodeId{1});
    int* const kept = known == known_.end() ? nullptr : &known->second[id & 1];
    const bool same_connection = kept != nullptr && *kept >= 0 && !first;
    const int fd = same_connection ? *kept : zmq_msg_get(Native(part), ZMQ_SRCFD);
    if (kept != nullptr) *kept = fd;
    guard_->Received(fd, known != known_.end(), first);
    last_ = {id, fd};
  }
  return well_formed && std::none_of(ports_.begin(), ports_.end(),
                                     [id](const ZmqPort& port) { return !port.is_router && port.id == id; });
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
