#include "net/unix_transport.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "net/address.h"
#include "net/lent_buffer.h"
#include "net/tcp.h"
#include "net/unix_stream.h"

namespace dtrain::net {
namespace {

constexpr milliseconds kFirstPause{20};  // between attempts to connect; doubles at each
constexpr milliseconds kMaxPause{200};
constexpr milliseconds kAcceptPause{100};  // where the system gives no connection: too many files are open
constexpr int kMaxEvents = 64;
// The system gives what it allows, by default 416 KiB.
constexpr int kSocketBytes = 4 << 20;
// Messages that are taken out of what was read before the system is asked again who has sent something: peers
// that always have another message waiting must not keep this side from all others.
constexpr int kMessagesBetweenLooks = 64;

}  // namespace

// UnixChannel: a Channel over Unix sockets. Its one epoll descriptor watches them all; what it reports is
// only a hint that a call on the socket is worth while, so a report that is out of date does no harm. Owner:
// the caller of NewChannel(). Thread: one.
class UnixChannel final : public Channel {
 public:
  explicit UnixChannel(const UnixOptions& options);
  ~UnixChannel() override;
  UnixChannel(const UnixChannel&) = delete;
  UnixChannel& operator=(const UnixChannel&) = delete;

  std::string Bind(const std::string& address) override { return BindDescriptor(Listen(address)); }
  std::string BindDescriptor(int listening_fd) override;
  // Throws UserError for an address that is no path.
  void Connect(NodeId id, const std::string& address) override;
  void Disconnect(NodeId id) override;
  SendResult Send(NodeId peer, Message& message) override;
  // Returns kTimeout early when a signal handler has run, so that the caller can check its flags.
  ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) override;
  void Gather() override { gathers_ = true; }
  ChannelStats stats() const override { return stats_; }
  uint64_t Connections(NodeId id) const override;

 private:
  // Conversation: one that this side makes.
  struct Conversation {
    SocketAddress address;
    uint64_t connections = 0;
    TimePoint next_attempt;
    milliseconds pause = kFirstPause;
  };

  void TryConnect(NodeId id, Conversation& conversation);
  UnixStream& Add(FileDescriptor socket, NodeId id, bool accepted);
  void Watch(UnixStream& connection, bool writes, bool first = false);
  void Accept();
  void Close(UnixStream& connection);
  bool IsHeld(const UnixStream& connection, const Outgoing& out) const;
  void Write(UnixStream& connection);
  void Flush() override;
  bool OnEvent(int fd, NodeId* from, Message* message);
  bool Take(UnixStream& connection, Message* message);
  bool Welcome(UnixStream& connection);
  TimePoint ConnectAgain(TimePoint now);
  int WaitForEvents(TimePoint deadline);

  const UnixOptions options_;
  const FileDescriptor epoll_;
  FileDescriptor listener_;
  TimePoint accepts_again_ = TimePoint::max();       // before that the system gives no connection
  std::unordered_map<int, UnixStream> connections_;  // by descriptor
  std::unordered_map<NodeId, UnixStream*> by_id_;
  std::unordered_map<NodeId, Conversation> conversations_;
  size_t unconnected_ = 0;    // of conversations_
  bool reconnected_ = false;  // and Receive() has not returned for it
  std::array<epoll_event, kMaxEvents> events_;
  std::deque<int> ready_;  // descriptors to look at before the next wait, each once
  int since_look_ = 0;     // messages since the last wait
  std::vector<int> held_;  // of connections some of whose messages were not offered to the system yet
  bool gathers_ = false;   // Gather() was called
  TimePoint received_;     // when Receive() last returned a message of a peer that has sent more
  LentBuffers payloads_;
  ChannelStats stats_;
};

UnixChannel::UnixChannel(const UnixOptions& options)
    : options_(options), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_.get() < 0) {
    throw IoError("cannot open another connection: {}. Raise the limit of open files (ulimit -n).",
                  ErrnoText(errno));
  }
}

// What is in the system's buffers reaches the peers even after the end of this process.
UnixChannel::~UnixChannel() {
  const TimePoint deadline = Clock::now() + options_.linger;
  std::vector<pollfd> waiting;
  do {
    waiting.clear();
    for (auto& [fd, connection] : connections_) {
      Write(connection);
      if (!connection.queue.empty()) waiting.push_back({fd, POLLOUT, 0});
    }
  } while (!waiting.empty() && Clock::now() < deadline &&
           poll(waiting.data(), waiting.size(), MillisecondsUntil(deadline, Clock::now())) != 0);
}

std::string UnixChannel::BindDescriptor(int listening_fd) {
  FileDescriptor listener(listening_fd);
  const std::string address = ListeningAddress(listening_fd);
  if (ParseAddress(address).path.empty()) throw UserError("{}: not the path of a Unix socket", address);
  DT_CHECK(listener_.get() < 0);
  fcntl(listening_fd, F_SETFL, fcntl(listening_fd, F_GETFL) | O_NONBLOCK);
  fcntl(listening_fd, F_SETFD, FD_CLOEXEC);
  epoll_event event{EPOLLIN, {.fd = listening_fd}};
  DT_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listening_fd, &event) == 0, errno);
  listener_ = std::move(listener);
  return address;
}

void UnixChannel::Connect(NodeId id, const std::string& address) {
  DT_CHECK(id >> 56 != 0 && conversations_.count(id) == 0, id);
  const Address parsed = ParseAddress(address);
  if (parsed.path.empty()) {
    throw UserError(
        "{}: cannot connect: not the path of a Unix socket. Either all tasks have one or none has.", address);
  }
  Conversation& conversation = conversations_[id];
  conversation.address = Resolve(parsed).addresses.at(0);
  ++unconnected_;
  TryConnect(id, conversation);
}

void UnixChannel::TryConnect(NodeId id, Conversation& conversation) {
  const TimePoint now = Clock::now();
  if (now < conversation.next_attempt) return;
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const UnixHead greeting = GreetingOf(id);
  if (socket.get() < 0 || connect(socket.get(), conversation.address.get(), conversation.address.size) != 0 ||
      send(socket.get(), &greeting, sizeof(greeting), MSG_NOSIGNAL) != sizeof(greeting)) {
    conversation.next_attempt = now + conversation.pause;
    conversation.pause = std::min(2 * conversation.pause, kMaxPause);
    return;
  }
  Add(std::move(socket), id, false);
  conversation.pause = kFirstPause;
  // A peer that ends each connection at once is not to keep this side busy.
  conversation.next_attempt = now + kFirstPause;
  --unconnected_;
  if (++conversation.connections > 1) reconnected_ = true;
}

UnixStream& UnixChannel::Add(FileDescriptor socket, NodeId id, bool accepted) {
  const int fd = socket.get();
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof(kSocketBytes));
  UnixStream& connection = connections_[fd];
  connection.socket = std::move(socket);
  connection.id = id;
  connection.accepted = accepted;
  if (id != 0) by_id_[id] = &connection;
  Watch(connection, false, true);
  return connection;
}

void UnixChannel::Watch(UnixStream& connection, bool writes, bool first) {
  connection.full = writes;
  const uint32_t reads = connection.closing ? 0u : static_cast<uint32_t>(EPOLLIN);
  epoll_event event{writes ? reads | static_cast<uint32_t>(EPOLLOUT) : reads,
                    {.fd = connection.socket.get()}};
  const int what = first ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  DT_CHECK(epoll_ctl(epoll_.get(), what, connection.socket.get(), &event) == 0, errno);
}

void UnixChannel::Accept() {
  while (true) {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() >= 0) {
      Add(std::move(socket), 0, true);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
      accepts_again_ = Clock::now() + kAcceptPause;
      return;
    }
  }
}

// `connection` is gone afterwards.
void UnixChannel::Close(UnixStream& connection) {
  const auto named = by_id_.find(connection.id);
  if (named != by_id_.end() && named->second == &connection) {
    by_id_.erase(named);
    if (!connection.accepted) ++unconnected_;
  }
  connections_.erase(connection.socket.get());
}

void UnixChannel::Disconnect(NodeId id) {
  const auto found = conversations_.find(id);
  if (found == conversations_.end()) return;
  const auto connected = by_id_.find(id);
  if (connected == by_id_.end()) {
    --unconnected_;
  } else {
    UnixStream& connection = *connected->second;
    by_id_.erase(connected);
    connection.id = 0;
    connection.closing = true;
    connection.queue.empty() || connection.deaf ? Close(connection) : Watch(connection, true);
  }
  conversations_.erase(found);
}

uint64_t UnixChannel::Connections(NodeId id) const {
  const auto found = conversations_.find(id);
  return found == conversations_.end() ? 0 : found->second.connections;
}

SendResult UnixChannel::Send(NodeId peer, Message& message) {
  DT_CHECK(!message.header.empty());
  const auto conversation = conversations_.find(peer);
  const bool made_here = conversation != conversations_.end();
  const SendResult refused = made_here ? SendResult::kFull : SendResult::kGone;
  auto found = by_id_.find(peer);
  if (found != by_id_.end() && made_here && found->second->deaf && found->second->buffered() == 0) {
    // Once its last words are read the connection is made anew.
    char next;
    if (recv(found->second->socket.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) Close(*found->second);
    found = by_id_.find(peer);
  }
  if (found == by_id_.end() && made_here) {
    TryConnect(peer, conversation->second);
    found = by_id_.find(peer);
  }
  if (found == by_id_.end() || found->second->deaf) return refused;
  UnixStream& connection = *found->second;
  if (connection.queue.size() >= options_.queue_messages) return SendResult::kFull;
  const uint64_t bytes = message.header.size() + message.payload.size();
  Outgoing out(std::move(message));
  const bool held = IsHeld(connection, out);
  if (!held && connection.queue.empty() && !connection.WriteOne(&out)) {
    connection.deaf = true;
    message = std::move(out.message);
    return refused;
  }
  stats_.bytes_sent += bytes;
  message = Message();
  if (out.written == out.size()) return SendResult::kSent;
  const bool first = connection.queue.empty();
  connection.queue.push_back(std::move(out));
  if (held) {
    if (first) held_.push_back(connection.socket.get());
  } else if (first) {
    Watch(connection, true);
  } else if (!connection.full) {
    Write(connection);
  }
  return SendResult::kSent;
}

// Whether a message is kept until the owner has read what this peer has sent: its answers go together then.
bool UnixChannel::IsHeld(const UnixStream& connection, const Outgoing& out) const {
  if (out.size() > (gathers_ ? kGatheredBytes : kShortBytes) || connection.full ||
      connection.queue.size() + 1 >= kBatchMessages)
    return false;
  return gathers_ || (connection.buffered() > 0 && Clock::now() - received_ < kAtOnce);
}

void UnixChannel::Flush() {
  for (const int fd : held_) {
    const auto found = connections_.find(fd);
    if (found != connections_.end() && !found->second.full) Write(found->second);
  }
  held_.clear();
}

// Writes what waits, as far as the system takes it.
void UnixChannel::Write(UnixStream& connection) {
  if (connection.queue.empty()) return;
  connection.WriteQueue();
  if (connection.full == connection.queue.empty()) Watch(connection, !connection.queue.empty());
}

ReceiveResult UnixChannel::Receive(TimePoint deadline, NodeId* from, Message* message) {
  while (true) {
    while (!ready_.empty()) {
      if (since_look_ == kMessagesBetweenLooks) {
        Flush();
        WaitForEvents(TimePoint());
      }
      const int fd = ready_.front();
      ready_.pop_front();
      if (!OnEvent(fd, from, message)) continue;
      ++since_look_;
      stats_.bytes_received += message->header.size() + message->payload.size();
      return ReceiveResult::kMessage;
    }
    Flush();
    if (std::exchange(reconnected_, false)) return ReceiveResult::kTimeout;
    const int count = WaitForEvents(deadline);
    if (count < 0 || (count == 0 && Clock::now() >= deadline)) return ReceiveResult::kTimeout;
  }
}

// Makes connections again whose time has come. Returns when the next attempt is due.
TimePoint UnixChannel::ConnectAgain(TimePoint now) {
  if (now >= accepts_again_) {
    accepts_again_ = TimePoint::max();
    epoll_event event{EPOLLIN, {.fd = listener_.get()}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
  }
  TimePoint next = accepts_again_;
  if (unconnected_ == 0) return next;
  for (auto& [id, conversation] : conversations_) {
    if (by_id_.count(id) != 0) continue;
    TryConnect(id, conversation);
    if (by_id_.count(id) == 0) next = std::min(next, conversation.next_attempt);
  }
  return next;
}

// Returns how many descriptors are ready; below 0: a signal handler has run.
int UnixChannel::WaitForEvents(TimePoint deadline) {
  since_look_ = 0;
  const TimePoint now = Clock::now();
  const TimePoint until = std::min(deadline, ConnectAgain(now));
  if (reconnected_) return 0;
  const int count = epoll_wait(epoll_.get(), events_.data(), kMaxEvents, MillisecondsUntil(until, now));
  for (int i = 0; i < count; ++i) {
    const int fd = events_[static_cast<size_t>(i)].data.fd;
    if (std::find(ready_.begin(), ready_.end(), fd) == ready_.end()) ready_.push_back(fd);
  }
  return count;
}

// Returns whether there is a message. What a connection has beyond it is looked at after the others'.
bool UnixChannel::OnEvent(int fd, NodeId* from, Message* message) {
  if (fd == listener_.get()) {
    Accept();
    return false;
  }
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return false;
  UnixStream& connection = found->second;
  if (connection.full) Write(connection);
  if (connection.closing) {
    if (connection.queue.empty()) Close(connection);
    return false;
  }
  if (!Take(connection, message)) return false;
  *from = connection.id;
  if (connection.buffered() > 0) {
    ready_.push_back(fd);
    received_ = Clock::now();
  }
  return true;
}

// Returns false when there is no whole message; the connection may be gone then.
bool UnixChannel::Take(UnixStream& connection, Message* message) {
  const auto limit =
      static_cast<uint64_t>(connection.accepted ? options_.max_request_bytes : options_.max_message_bytes);
  while (true) {
    const UnixStream::Arrived arrived = connection.Parse(limit, &payloads_, message);
    if (arrived == UnixStream::Arrived::kMessage) return true;
    if (arrived == UnixStream::Arrived::kGreeting && Welcome(connection)) continue;
    if (arrived != UnixStream::Arrived::kNothing) {
      ++stats_.frames_dropped;
      Close(connection);
      return false;
    }
    const ssize_t got = connection.Read();
    if (got == 0) Close(connection);
    if (got <= 0) return false;
  }
}

// Takes a connection for the conversation that it has named, in place of an older one. False: that is one
// that this side makes.
bool UnixChannel::Welcome(UnixStream& connection) {
  if (conversations_.count(connection.id) != 0) return false;
  const auto older = by_id_.find(connection.id);
  if (older != by_id_.end()) Close(*older->second);
  by_id_[connection.id] = &connection;
  return true;
}

std::unique_ptr<Channel> UnixTransport::NewChannel() { return std::make_unique<UnixChannel>(options_); }

}  // namespace dtrain::net
