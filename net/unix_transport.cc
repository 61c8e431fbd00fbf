#include "net/unix_transport.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "net/address.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "net/tcp.h"

namespace dtrain::net {
namespace {

constexpr milliseconds kFirstPause{20};  // between attempts to connect; doubles at each
constexpr milliseconds kMaxPause{200};
constexpr milliseconds kAcceptPause{100};  // where the system gives no connection: too many files are open
constexpr int kMaxWaitMs = 3'600'000;
constexpr int kMaxEvents = 64;
// A message with an inline tensor fits in. Of a larger one as much is copied twice.
constexpr size_t kBufferBytes = 8192;
// The system gives what it allows, by default 416 KiB.
constexpr int kSocketBytes = 4 << 20;
// Short messages that are written together, and how soon after a message was received they must come for
// that: then the owner is sure to be back soon.
constexpr size_t kShortBytes = 1024;
constexpr size_t kBatchMessages = 16;
constexpr std::chrono::microseconds kAtOnce{20};
constexpr uint32_t kGreeting = 0x31755464;  // "dTu1"
constexpr uint32_t kMessage = 0x6d755464;   // "dTum"

// Head: what stands before a message. A connection begins with one whose size is the NodeId.
struct Head {
  uint32_t magic = 0;
  uint32_t header_bytes = 0;
  uint64_t payload_bytes = 0;
};
static_assert(sizeof(Head) == 16);

// Outgoing: a message that waits, wholly or in part, to be written.
struct Outgoing {
  Head head;
  Message message;
  size_t written = 0;

  size_t size() const { return sizeof(head) + message.header.size() + message.payload.size(); }
};

// Writes as much as the system takes of the messages from `first` on, several with one call, and counts it.
// Returns false when the connection takes nothing any more.
template <typename Iterator>
bool Write(int fd, Iterator first, Iterator end) {
  while (first != end) {
    std::array<iovec, size_t{3} * kBatchMessages> parts;
    size_t count = 0;
    for (Iterator out = first; out != end && count + 3 <= parts.size(); ++out) {
      size_t skip = out->written;
      const auto add = [&](const void* data, size_t size) {
        const size_t skipped = std::min(skip, size);
        skip -= skipped;
        if (skipped == size) return;
        parts[count++] = {const_cast<char*>(static_cast<const char*>(data)) + skipped, size - skipped};
      };
      add(&out->head, sizeof(out->head));
      add(out->message.header.data(), out->message.header.size());
      add(out->message.payload.data(), out->message.payload.size());
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    ssize_t wrote = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno == EAGAIN;
    while (wrote > 0) {
      const size_t of_first = std::min(static_cast<size_t>(wrote), first->size() - first->written);
      first->written += of_first;
      wrote -= static_cast<ssize_t>(of_first);
      if (first->written == first->size()) ++first;
    }
  }
  return true;
}

// Connection: one socket and what is on its way over it.
struct Connection {
  FileDescriptor socket;
  NodeId id = 0;  // 0: accepted, and it has not said yet which conversation it is
  bool accepted = false;
  bool deaf = false;     // the peer reads no more; what it has sent can still be read
  bool closing = false;  // nothing is read; it goes when its queue is empty
  bool full = false;     // the system takes nothing now; it is asked again when it says so
  std::deque<Outgoing> queue;

  std::vector<std::byte> buffer;  // received, from `begin` to `end`; empty between messages
  size_t begin = 0;
  size_t end = 0;
  Message message;  // whose payload is being received
  std::byte* payload = nullptr;
  size_t payload_missing = 0;

  size_t buffered() const { return end - begin; }
};

int MillisecondsUntil(TimePoint deadline, TimePoint now) {
  if (deadline <= now) return 0;
  return static_cast<int>(
      std::min<int64_t>(std::chrono::ceil<milliseconds>(deadline - now).count(), kMaxWaitMs));
}

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
  Connection& Add(FileDescriptor socket, NodeId id, bool accepted);
  void Watch(Connection& connection, bool writes, bool first = false);
  void Accept();
  void Close(Connection& connection);
  bool IsHeld(const Connection& connection, const Outgoing& out) const;
  void Flush(Connection& connection);
  void FlushHeld();
  bool OnEvent(int fd, NodeId* from, Message* message);
  bool Take(Connection& connection, Message* message);
  bool Parse(Connection& connection, Message* message);
  bool ParseGreeting(Connection& connection, const Head& head);
  bool BeginPayload(Connection& connection, size_t bytes);
  bool Read(Connection& connection);
  TimePoint ConnectAgain(TimePoint now);
  int WaitForEvents(TimePoint deadline);

  const UnixOptions options_;
  const FileDescriptor epoll_;
  FileDescriptor listener_;
  TimePoint accepts_again_ = TimePoint::max();       // before that the system gives no connection
  std::unordered_map<int, Connection> connections_;  // by descriptor
  std::unordered_map<NodeId, Connection*> by_id_;
  std::unordered_map<NodeId, Conversation> conversations_;
  size_t unconnected_ = 0;    // of conversations_
  bool reconnected_ = false;  // and Receive() has not returned for it
  std::array<epoll_event, kMaxEvents> events_;
  std::deque<int> ready_;  // descriptors to look at before the next wait
  std::vector<int> held_;  // of connections some of whose messages were not offered to the system yet
  TimePoint received_;     // when Receive() last returned a message
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
      Flush(connection);
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
  const Head greeting{kGreeting, 0, id};
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

Connection& UnixChannel::Add(FileDescriptor socket, NodeId id, bool accepted) {
  const int fd = socket.get();
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof(kSocketBytes));
  Connection& connection = connections_[fd];
  connection.socket = std::move(socket);
  connection.id = id;
  connection.accepted = accepted;
  if (id != 0) by_id_[id] = &connection;
  Watch(connection, false, true);
  return connection;
}

void UnixChannel::Watch(Connection& connection, bool writes, bool first) {
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
void UnixChannel::Close(Connection& connection) {
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
    Connection& connection = *connected->second;
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
  if (found != by_id_.end() && made_here && found->second->deaf) {
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
  Connection& connection = *found->second;
  if (connection.queue.size() >= options_.queue_messages) return SendResult::kFull;
  const uint64_t bytes = message.header.size() + message.payload.size();
  Outgoing out{{kMessage, static_cast<uint32_t>(message.header.size()), message.payload.size()},
               std::move(message)};
  const bool held = IsHeld(connection, out);
  if (!held && connection.queue.empty() && !Write(connection.socket.get(), &out, &out + 1)) {
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
    Flush(connection);
  }
  return SendResult::kSent;
}

// Whether a message is kept until the owner has read what this peer has sent: its answers go together then.
bool UnixChannel::IsHeld(const Connection& connection, const Outgoing& out) const {
  return connection.buffered() > 0 && out.size() <= kShortBytes && !connection.full &&
         connection.queue.size() + 1 < kBatchMessages && Clock::now() - received_ < kAtOnce;
}

void UnixChannel::FlushHeld() {
  for (const int fd : held_) {
    const auto found = connections_.find(fd);
    if (found != connections_.end() && !found->second.full) Flush(found->second);
  }
  held_.clear();
}

// Writes what waits, as far as the system takes it.
void UnixChannel::Flush(Connection& connection) {
  std::deque<Outgoing>& queue = connection.queue;
  if (queue.empty()) return;
  if (!Write(connection.socket.get(), queue.begin(), queue.end())) connection.deaf = true;
  if (connection.deaf) queue.clear();
  while (!queue.empty() && queue.front().written == queue.front().size()) queue.pop_front();
  if (connection.full == queue.empty()) Watch(connection, !queue.empty());
}

ReceiveResult UnixChannel::Receive(TimePoint deadline, NodeId* from, Message* message) {
  while (true) {
    while (!ready_.empty()) {
      const int fd = ready_.front();
      ready_.pop_front();
      if (!OnEvent(fd, from, message)) continue;
      stats_.bytes_received += message->header.size() + message->payload.size();
      received_ = Clock::now();
      return ReceiveResult::kMessage;
    }
    FlushHeld();
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
  const TimePoint now = Clock::now();
  const TimePoint until = std::min(deadline, ConnectAgain(now));
  if (reconnected_) return 0;
  const int count = epoll_wait(epoll_.get(), events_.data(), kMaxEvents, MillisecondsUntil(until, now));
  for (int i = 0; i < count; ++i) ready_.push_back(events_[static_cast<size_t>(i)].data.fd);
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
  Connection& connection = found->second;
  if (connection.full) Flush(connection);
  if (connection.closing) {
    if (connection.queue.empty()) Close(connection);
    return false;
  }
  if (!Take(connection, message)) return false;
  *from = connection.id;
  if (connection.buffered() > 0) ready_.push_back(fd);
  return true;
}

// Returns false when there is no whole message; the connection may be gone then.
bool UnixChannel::Take(Connection& connection, Message* message) {
  while (true) {
    const size_t dropped = stats_.frames_dropped;
    if (Parse(connection, message)) return true;
    if (stats_.frames_dropped != dropped) {
      Close(connection);
      return false;
    }
    if (!Read(connection)) return false;
  }
}

// Takes a message from what was received. Returns false when more is needed, and when what came is none,
// which is counted as a dropped frame.
bool UnixChannel::Parse(Connection& connection, Message* message) {
  while (connection.payload == nullptr) {
    if (connection.buffered() < sizeof(Head)) return false;
    Head head;
    std::memcpy(&head, connection.buffer.data() + connection.begin, sizeof(head));
    if (connection.id == 0) {
      if (!ParseGreeting(connection, head)) return false;
      continue;
    }
    const auto limit =
        static_cast<uint64_t>(connection.accepted ? options_.max_request_bytes : options_.max_message_bytes);
    if (head.magic != kMessage || head.header_bytes == 0 || head.header_bytes > kMaxHeaderBytes ||
        head.payload_bytes > limit) {
      ++stats_.frames_dropped;
      return false;
    }
    const size_t size = sizeof(head) + head.header_bytes;
    if (connection.buffered() < size) {
      if (connection.buffer.size() < size) connection.buffer.resize(size);
      return false;
    }
    const std::byte* const header = connection.buffer.data() + connection.begin + sizeof(head);
    connection.message.header = Frame::Copy(header, head.header_bytes);
    connection.begin += size;
    if (!BeginPayload(connection, head.payload_bytes)) break;
  }
  if (connection.payload_missing > 0) return false;
  *message = std::exchange(connection.message, Message());
  connection.payload = nullptr;
  return true;
}

// Replaces an older connection of the same conversation.
bool UnixChannel::ParseGreeting(Connection& connection, const Head& head) {
  const NodeId id = head.payload_bytes;
  if (head.magic != kGreeting || head.header_bytes != 0 || id >> 56 == 0 || conversations_.count(id) != 0) {
    ++stats_.frames_dropped;
    return false;
  }
  const auto older = by_id_.find(id);
  if (older != by_id_.end()) Close(*older->second);
  connection.id = id;
  by_id_[id] = &connection;
  connection.begin += sizeof(head);
  return true;
}

// Returns false when there is no payload.
bool UnixChannel::BeginPayload(Connection& connection, size_t bytes) {
  if (bytes == 0) return false;
  const LentBuffer& memory = payloads_.Free(bytes);
  const LentBytes lent = memory.Lend(0, bytes);
  connection.message.payload = Frame::Lend(lent.data, lent.size, lent.release, lent.context);
  connection.payload = reinterpret_cast<std::byte*>(memory.floats());
  connection.payload_missing = bytes;
  const size_t here = std::min(bytes, connection.buffered());
  std::memcpy(connection.payload, connection.buffer.data() + connection.begin, here);
  connection.begin += here;
  connection.payload += here;
  connection.payload_missing -= here;
  return true;
}

// Reads once: into the payload that is under way, and what comes after it into the buffer. Returns false when
// nothing is there, and when the connection has ended and is gone.
bool UnixChannel::Read(Connection& connection) {
  std::vector<std::byte>& buffer = connection.buffer;
  if (connection.begin > 0)
    std::memmove(buffer.data(), buffer.data() + connection.begin, connection.buffered());
  connection.end -= std::exchange(connection.begin, 0);
  if (connection.end == 0 && buffer.size() != kBufferBytes) buffer = std::vector<std::byte>(kBufferBytes);
  const iovec parts[2] = {{connection.payload, connection.payload_missing},
                          {buffer.data() + connection.end, buffer.size() - connection.end}};
  const bool payload = connection.payload_missing > 0;
  ssize_t got;
  do {
    got = readv(connection.socket.get(), payload ? parts : parts + 1, payload ? 2 : 1);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {
    Close(connection);
    return false;
  }
  const size_t of_payload = std::min(connection.payload_missing, static_cast<size_t>(got));
  connection.payload += of_payload;
  connection.payload_missing -= of_payload;
  connection.end += static_cast<size_t>(got) - of_payload;
  return true;
}

std::unique_ptr<Channel> UnixTransport::NewChannel() { return std::make_unique<UnixChannel>(options_); }

}  // namespace dtrain::net
