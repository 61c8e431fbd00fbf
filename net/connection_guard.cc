#include "net/connection_guard.h"

#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "net/tcp.h"

namespace dtrain::net {
namespace {

// How often to look at the connections while there are strangers, and while there are none. Few are looked at
// more often: in 10 ms one of them can send 80 MiB over the loopback of a fast machine.
constexpr milliseconds kLookAtStrangers{10};
constexpr milliseconds kLookAtFew{3};
constexpr size_t kFew = 32;
constexpr milliseconds kLook{20};
// At the limit of strangers every second look makes room: all are replaced in half a second.
constexpr size_t kLooksWithCuts = 25;
constexpr milliseconds kReplaceAll{250};  // in no less time, however many come at one moment
// libzmq looks for connections with new messages once in 100 messages.
constexpr uint64_t kTurnSlack = 200;
// The messages of a connection that wait for the channel at most, with the empty one that it begins with.
constexpr uint64_t kQueue = 9;
// One in so many strangers may have gone and left messages.
constexpr size_t kGoneOneIn = 8;

// How many bytes of the connection libzmq has read. None: it is closed, or no TCP connection.
std::optional<uint64_t> Consumed(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  int waiting = 0;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) return std::nullopt;
  if (ioctl(fd, FIONREAD, &waiting) != 0) return std::nullopt;
  const auto unread = static_cast<uint64_t>(std::max(waiting, 0));
  return info.tcpi_bytes_received - std::min<uint64_t>(unread, info.tcpi_bytes_received);
}

// A number for the peer's address, never 0.
uint64_t PeerOf(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
  const std::string_view bytes(reinterpret_cast<const char*>(&peer), sizeof(peer));
  return std::hash<std::string_view>{}(bytes) | 1;
}

}  // namespace

ConnectionGuard::ConnectionGuard(void* zmq_context, void* router, int listening_fd, const Limits& limits)
    : limits_(limits), router_(router), listening_fd_(listening_fd), counts_(kMaxDescriptors) {
  const std::string endpoint = "inproc://guard-" + std::to_string(reinterpret_cast<uintptr_t>(this));
  const int watched = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED;
  DT_CHECK(zmq_socket_monitor(router, endpoint.c_str(), watched) == 0, errno);
  events_ = zmq_socket(zmq_context, ZMQ_PAIR);
  DT_CHECK(events_ != nullptr, errno);
  const int unbounded = 0;  // libzmq's thread waits for room otherwise
  DT_CHECK(zmq_setsockopt(events_, ZMQ_RCVHWM, &unbounded, sizeof(unbounded)) == 0, errno);
  DT_CHECK(zmq_connect(events_, endpoint.c_str()) == 0, errno);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  DT_CHECK(stop_fd_ >= 0, errno);
  thread_ = std::thread([this] { Run(); });
}

ConnectionGuard::~ConnectionGuard() {
  const uint64_t one = 1;
  DT_CHECK(write(stop_fd_, &one, sizeof(one)) == sizeof(one), errno);
  thread_.join();
  zmq_socket_monitor(router_, nullptr, 0);
  zmq_close(events_);
  close(stop_fd_);
}

ConnectionGuard::Count* ConnectionGuard::CountOf(int fd) {
  const auto index = static_cast<size_t>(fd);
  return fd >= 0 && index < counts_.size() ? &counts_[index] : nullptr;
}

void ConnectionGuard::Received(int fd, bool known, bool first) {
  total_.store(total_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  Count* const count = CountOf(fd);
  if (count == nullptr) return;
  count->messages.store(count->messages.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool marked = count->known_peer.load(std::memory_order_relaxed) != 0;
  if (marked != known || (known && first)) SetKnown(fd, known);
}

void ConnectionGuard::SetKnown(int fd, bool known) {
  if (Count* const count = CountOf(fd)) {
    count->known_peer.store(known ? PeerOf(fd) : 0, std::memory_order_relaxed);
  }
}

void ConnectionGuard::Run() {
  int events_fd = -1;
  size_t size = sizeof(events_fd);
  DT_CHECK(zmq_getsockopt(events_, ZMQ_FD, &events_fd, &size) == 0, errno);
  pollfd items[] = {{stop_fd_, POLLIN, 0}, {events_fd, POLLIN, 0}};
  TimePoint next_look;
  while (items[0].revents == 0) {
    const bool accepted = TakeEvents();
    if (!HasRoom()) SetOpen(false);
    const TimePoint now = Clock::now();
    if (now >= next_look) {
      Look(now);
      next_look = now + PauseOfLooks();
    } else if (accepted) {
      next_look = std::min(next_look, now + PauseOfLooks());
    }
    // While there are strangers, events wait for the look: to wake for each one takes the processor from the
    // tasks where strangers come and go.
    const auto wait = std::chrono::ceil<milliseconds>(next_look - now).count();
    poll(items, strangers_ > 0 ? 1 : 2, connections_.empty() && open_ ? -1 : static_cast<int>(wait));
  }
}

milliseconds ConnectionGuard::PauseOfLooks() const {
  if (!open_) return kLookAtStrangers;
  if (strangers_ == 0) return kLook;
  // At the limit each look makes room, at a pace.
  return strangers_ <= std::min(kFew, limits_.strangers / 2) ? kLookAtFew : kLookAtStrangers;
}

// Returns whether a connection is new. An event is a frame with its number and the descriptor, then a frame
// with the address.
bool ConnectionGuard::TakeEvents() {
  bool accepted = false;
  while (true) {
    unsigned char head[6];
    if (zmq_recv(events_, head, sizeof(head), ZMQ_DONTWAIT) != static_cast<int>(sizeof(head)))
      return accepted;
    uint16_t event;
    int32_t fd;
    std::memcpy(&event, head, sizeof(event));
    std::memcpy(&fd, head + sizeof(event), sizeof(fd));
    zmq_recv(events_, nullptr, 0, 0);
    Count* const count = CountOf(fd);
    if (count == nullptr) continue;
    const auto old = connections_.find(fd);
    if (old != connections_.end()) {
      if (!old->second.known) ++gone_;
      connections_.erase(old);
    }
    if (event != ZMQ_EVENT_ACCEPTED) continue;
    accepted = true;
    ++strangers_;
    Connection connection;
    connection.peer = PeerOf(fd);
    connection.stranger_since = Clock::now();
    connection.first_message = connection.messages = count->messages.load(std::memory_order_relaxed);
    connections_.emplace(fd, connection);
  }
}

bool ConnectionGuard::HasRoom() const {
  return strangers_ < limits_.strangers && gone_ + gone_before_ < limits_.strangers / kGoneOneIn + 1;
}

// What a connection that was closed has sent before stays in the socket's queues until the channel has had
// its turn: it ran dry, or took so many messages that each queue was emptied. It may have looked for a
// message just before the last one came, so a second turn is waited for.
void ConnectionGuard::ForgetTheTaken() {
  const uint64_t total = total_.load(std::memory_order_relaxed), dry = dry_.load(std::memory_order_relaxed);
  const size_t queues = connections_.size() + gone_ + gone_before_;
  if (dry == turn_dry_ && total - turn_total_ <= kQueue * queues + kTurnSlack) return;
  gone_before_ = std::exchange(gone_, 0);
  turn_total_ = total;
  turn_dry_ = dry;
}

void ConnectionGuard::Look(TimePoint now) {
  ForgetTheTaken();
  asks_.store(gone_ + gone_before_ > 0, std::memory_order_relaxed);
  std::vector<std::pair<TimePoint, int>> strangers;
  for (auto& [fd, connection] : connections_) {
    const std::optional<uint64_t> consumed = connection.ended ? std::nullopt : Consumed(fd);
    if (!consumed) continue;
    const Count& count = counts_[static_cast<size_t>(fd)];
    const bool known = count.known_peer.load(std::memory_order_relaxed) == connection.peer;
    if (std::exchange(connection.known, known) && !known) {
      connection.stranger_since = now;
      connection.first_message = count.messages.load(std::memory_order_relaxed);
      connection.first_byte = *consumed;
    }
    if (known ? HoldsMoreThan(limits_.message_bytes, count, connection, *consumed)
              : StrangerBreaksLimit(count, connection, *consumed, now)) {
      End(fd, connection);
    } else if (!known) {
      strangers.emplace_back(connection.stranger_since, fd);
    }
  }
  strangers_ = strangers.size();
  if (strangers_ >= limits_.strangers) {
    MakeRoom(std::move(strangers), now);
  } else if (now >= opens_ && HasRoom()) {
    SetOpen(true);
  }
}

// Whoever is cut off may come again at once, and then finds the listening socket closed for the longer, the
// more were cut off. Far too many strangers are there only if many came at one moment, or if the socket
// cannot be closed.
void ConnectionGuard::MakeRoom(std::vector<std::pair<TimePoint, int>> strangers, TimePoint now) {
  const size_t excess = strangers.size() - limits_.strangers;
  const size_t cuts = excess > limits_.strangers / 2 ? excess : limits_.strangers / kLooksWithCuts + 1;
  opens_ = now + kReplaceAll * cuts / std::max<size_t>(limits_.strangers, 1);
  const auto end = strangers.begin() + static_cast<std::ptrdiff_t>(cuts);
  std::nth_element(strangers.begin(), end, strangers.end());
  std::for_each(strangers.begin(), end,
                [this](const auto& one) { End(one.second, connections_.at(one.second)); });
}

// A filter on the listening socket drops what would complete a connection. The kernel of a newcomer believes
// that it is connected and repeats what it sends, ever less often: who came last asks most, and strangers who
// have waited for long take few places. Where the system has no such filters, the socket stays open.
void ConnectionGuard::SetOpen(bool open) {
  if (open == open_) return;
  constexpr unsigned kFlagsOffset = 13, kSyn = 0x02, kAck = 0x10;
  sock_filter only_first_packets[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, kFlagsOffset},
                                      {BPF_ALU | BPF_AND | BPF_K, 0, 0, kSyn | kAck},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kSyn},
                                      {BPF_RET | BPF_K, 0, 0, 0xffff'ffff},
                                      {BPF_RET | BPF_K, 0, 0, 0}};
  const sock_fprog program{static_cast<unsigned short>(std::size(only_first_packets)), only_first_packets};
  setsockopt(listening_fd_, SOL_SOCKET, open ? SO_DETACH_FILTER : SO_ATTACH_FILTER, &program,
             sizeof(program));
  open_ = open;
}

// A connection begins with an empty message, so a task that has lost its connection and repeats all that it
// has open is known before the rest of that is looked at.
bool ConnectionGuard::StrangerBreaksLimit(const Count& count, Connection& connection, uint64_t consumed,
                                          TimePoint now) const {
  const uint32_t messages = count.messages.load(std::memory_order_relaxed) - connection.first_message;
  if (now - connection.stranger_since > limits_.stranger_age || messages > limits_.stranger_messages)
    return true;
  return messages == 0 ? HoldsMoreThan(limits_.stranger_bytes, count, connection, consumed)
                       : consumed > connection.first_byte + limits_.stranger_bytes;
}

// The channel takes whole messages of all connections in turn. If it has had its turn since an earlier look
// and nothing came from this connection, all that libzmq had read of it by then, behind the last message, is
// part of one that is not whole.
bool ConnectionGuard::HoldsMoreThan(uint64_t limit, const Count& count, Connection& connection,
                                    uint64_t consumed) const {
  const uint64_t total = total_.load(std::memory_order_relaxed), dry = dry_.load(std::memory_order_relaxed);
  const uint32_t messages = count.messages.load(std::memory_order_relaxed);
  const bool new_message = messages != connection.messages;
  const bool had_turn = dry != connection.dry || total - connection.total > connections_.size() + kTurnSlack;
  if (!new_message && !had_turn) return false;
  if (new_message) connection.delivered = consumed;
  const bool more = connection.consumed > connection.delivered + limit;
  connection.messages = messages;
  connection.consumed = consumed;
  connection.total = total;
  connection.dry = dry;
  return more;
}

// Ends it if it is still the same connection: libzmq may have closed it meanwhile, and the number may be that
// of another file.
void ConnectionGuard::End(int fd, Connection& connection) {
  connection.ended = true;
  if (PeerOf(fd) != connection.peer) return;
  const linger reset{1, 0};  // the kernel keeps nothing for a peer that does not stop sending
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  shutdown(fd, SHUT_RDWR);
}

}  // namespace dtrain::net
