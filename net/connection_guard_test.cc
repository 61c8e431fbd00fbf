#include "net/connection_guard.h"

#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <optional>
#include <thread>

#include "net/channel_test_util.h"

namespace dtrain::net {
namespace {

constexpr int64_t kMiB = 1 << 20;

// RawPeer: a TCP connection that speaks ZMTP as the test says.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const Resolved resolved = Resolve(ParseAddress(address));
    REQUIRE(connect(descriptor_, resolved.addresses[0].get(), resolved.addresses[0].size) == 0);
  }
  ~RawPeer() { close(descriptor_); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  // The greeting of ZMTP 3 without keys, and READY with a routing id of 8 characters.
  RawPeer& ShakeHands(const std::string& id) {
    REQUIRE(IsGreeted(kPatience));
    return SendReady(id);
  }
  RawPeer& SendReady(const std::string& id) {
    const std::string ready = std::string("\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\10", 41) + id;
    Send(std::string("\4") + static_cast<char>(ready.size()) + ready);
    return *this;
  }
  // Whether the other side answers the greeting in time, with its own one and READY.
  bool IsGreeted(milliseconds patience) {
    Send(std::string("\xff\0\0\0\0\0\0\0\0\x7f\3\0NULL", 16) + std::string(48, '\0'));
    const timeval wait{patience.count() / 1000, patience.count() % 1000 * 1000};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    char answer[64 + 43];
    return recv(descriptor_, answer, sizeof(answer), MSG_WAITALL) == sizeof(answer);
  }
  // False: the connection is closed.
  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  }
  // How much the other side, in this process, has read of this connection.
  int64_t BytesTaken() const {
    for (int fd = 0; fd < 1024; ++fd) {
      if (!AreEnds(descriptor_, fd)) continue;
      tcp_info info{};
      socklen_t size = sizeof(info);
      int waiting = 0;
      REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
      REQUIRE(ioctl(fd, FIONREAD, &waiting) == 0);
      return static_cast<int64_t>(info.tcpi_bytes_received) - waiting;
    }
    return 0;
  }
  bool IsClosed(milliseconds patience = kPatience) {
    const TimePoint deadline = Clock::now() + patience;
    do {
      char bytes[1000];
      pollfd item{descriptor_, POLLIN, 0};
      poll(&item, 1, patience > milliseconds(0) ? 20 : 0);
      if (item.revents != 0 && recv(descriptor_, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0) return true;
    } while (Clock::now() < deadline);
    return false;
  }

 private:
  static bool AreEnds(int a, int b) {
    sockaddr_in of_a{}, peer_of_b{};
    socklen_t size = sizeof(of_a);
    if (getsockname(a, reinterpret_cast<sockaddr*>(&of_a), &size) != 0) return false;
    size = sizeof(peer_of_b);
    if (getpeername(b, reinterpret_cast<sockaddr*>(&peer_of_b), &size) != 0) return false;
    return a != b && of_a.sin_port == peer_of_b.sin_port;
  }

  const int descriptor_;
};

// Server: a channel with a guard.
struct Server {
  explicit Server(const ConnectionGuard::Limits& limits) {
    ZmqOptions options;
    options.guard = limits;
    options.max_request_bytes = kMiB + (64 << 10);
    transport.emplace(options);
    channel = transport->NewChannel();
    address = channel->Bind("127.0.0.1:0");
  }
  // Takes what comes, on a thread, as the loop of a ps does, and waits for it so long each time.
  void Loop(milliseconds wait = milliseconds(20)) {
    loop = std::thread([this, wait] {
      NodeId from;
      Message message;
      while (!stop) channel->Receive(Clock::now() + wait, &from, &message);
    });
  }
  void EndLoop() {
    stop = true;
    loop.join();
  }
  // A message goes to and fro. Newcomers get in while the channel takes what has come. It is sent again after
  // a while: the connection may be cut before it is known, with what is on its way in either direction.
  void Serve(Channel& client, NodeId id, const std::string& payload = "") {
    const std::string ask = "ask " + std::to_string(++asks_), answer = "answer to " + ask;
    const TimePoint deadline = Clock::now() + kPatience;
    TimePoint again;
    std::string got;
    do {
      REQUIRE(Clock::now() < deadline);
      Message message = TextMessage(ask, payload);
      if (Clock::now() >= again && client.Send(id, message) == SendResult::kSent) {
        again = Clock::now() + milliseconds(2000);
      }
      NodeId from = 0;
      channel->Receive(Clock::now() + milliseconds(2), &from, &message);
      if (from == id && message.header.text() == ask) channel->Send(id, message = TextMessage(answer));
      Received received;
      client.Receive(Clock::now() + milliseconds(2), &received.from, &received.message);
      if (received.from != 0) got = received.header();
    } while (got != answer);
  }

  std::optional<ZmqTransport> transport;
  std::unique_ptr<Channel> channel;
  std::string address;
  std::thread loop;
  std::atomic<bool> stop{false};

 private:
  int asks_ = 0;
};

struct Client {
  explicit Client(const Server& server) { channel->Connect(id, server.address); }

  ZmqTransport transport;
  std::unique_ptr<Channel> channel = transport.NewChannel();
  NodeId id = NewNodeId();
};

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// Sends parts of one message until the connection ends. Returns the bytes sent.
int64_t SendPartsUntilClosed(RawPeer& peer) {
  std::string parts;
  for (int i = 0; i < 32'000; ++i) parts += std::string("\1\0", 2);
  int64_t sent = 0;
  while (sent < 100 * kMiB && peer.Send(parts)) sent += static_cast<int64_t>(parts.size());
  return sent;
}

// Whether a socket takes a filter here, by which the guard closes the listening one: not in each sandbox.
bool SystemHasFilters() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, 0xffff'ffff}};
  const sock_fprog program{1, all};
  const bool taken = setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
  close(descriptor);
  return taken;
}

ConnectionGuard::Limits WideLimits() {
  ConnectionGuard::Limits limits;
  limits.stranger_age = kPatience;
  return limits;
}

}  // namespace

// How much comes in before the guard looks depends on when the machine lets it: the least of three counts.
TEST_CASE("connection guard: a stranger's message of endless parts ends its connection, and costs little") {
  int64_t sent = 100 * kMiB, grown = 100 * kMiB;
  for (int attempt = 0; attempt < 3 && (sent >= 20 * kMiB || grown >= 64 * kMiB); ++attempt) {
    Server server(WideLimits());
    Client client(server);
    server.Serve(*client.channel, client.id);
    malloc_trim(0);  // what an attempt has left is not there for the next
    const int64_t before = ResidentBytes();
    REQUIRE(before > 0);
    RawPeer stranger(server.address);
    server.Loop();
    sent = std::min(sent, SendPartsUntilClosed(stranger.ShakeHands("12345678")));
    grown = std::min(grown, ResidentBytes() - before);
    server.EndLoop();
    server.Serve(*client.channel, client.id);
  }
  CHECK(sent < 20 * kMiB);
#ifndef __SANITIZE_ADDRESS__
  CHECK(grown < 64 * kMiB);
#endif
}

TEST_CASE("connection guard: so does that of a task of the run, while others are served") {
  Server server(WideLimits());
  Client client(server);
  server.channel->SetKnown(client.id, true);
  server.channel->SetKnown(0x3132333435363738, true);
  RawPeer peer(server.address);
  REQUIRE(peer.ShakeHands("12345678").Send(std::string("\0\5hello", 7)));
  CHECK(ReceiveSoon(*server.channel).header() == "hello");
  std::atomic<bool> closed{false};
  std::thread parts([&] {
    CHECK(SendPartsUntilClosed(peer) < 100 * kMiB);
    closed = true;
  });
  while (!closed) server.Serve(*client.channel, client.id);
  parts.join();
  server.Serve(*client.channel, client.id);
}

TEST_CASE("connection guard: a task may have many whole messages under way that are not taken for long") {
  Server server(WideLimits());
  Client client(server);
  server.channel->SetKnown(client.id, true);  // before it connects, as one that has lost its connection
  const std::string payload(kMiB, 'x');
  const int messages = 40;
  for (int i = 0; i < messages; ++i) {
    REQUIRE(SendSoon(*client.channel, client.id, TextMessage("part", payload)) == SendResult::kSent);
  }
  for (int i = 0; i < messages; ++i) {
    std::this_thread::sleep_for(milliseconds(i < 10 ? 60 : 0));
    CHECK(ReceiveSoon(*server.channel).payload().size() == payload.size());
  }
  server.Serve(*client.channel, client.id);
  CHECK(client.channel->Connections(client.id) == 1);
}

TEST_CASE("connection guard: a stranger may not send much, nor often") {
  ConnectionGuard::Limits limits = WideLimits();
  limits.stranger_bytes = 10'000;
  limits.stranger_messages = 100;
  Server server(limits);
  server.Loop();
  RawPeer large(server.address);
  REQUIRE(
      large.ShakeHands("12345678").Send(std::string("\3\0\0\0\0\0\0\xff\xff", 9) + std::string(11'000, 'x')));
  CHECK(large.IsClosed());
  RawPeer often(server.address);
  often.ShakeHands("abcdefgh");
  // The guard counts from when it hears of the connection; a thousand of these have not too many bytes.
  for (int i = 0; i < 1000 && often.Send(std::string("\0\5hello", 7)); ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(often.IsClosed());
  server.EndLoop();
}

// No limit of the guard is broken, and the channel takes nothing: what libzmq holds is what its queues allow.
TEST_CASE("connection guard: whole messages that nobody takes cost 177 KiB a connection at most") {
  ConnectionGuard::Limits limits = WideLimits();
  limits.stranger_bytes = 100 * kMiB;
  Server server(limits);
  std::list<RawPeer> strangers;
  constexpr int kStrangers = 60, kApart = 10, kTogether = 96, kBytes = 3000;
  const std::string frame = std::string("\2\0\0\0\0\0\0\x0b\xb8", 9) + std::string(kBytes, 'x');
  std::string batch;
  for (int i = 0; i < kTogether; ++i) batch += frame;
  malloc_trim(0);
  const int64_t before = ResidentBytes();
  for (int i = 0; i < kStrangers; ++i) {
    strangers.emplace_back(server.address);
    strangers.back().ShakeHands(std::to_string(10'000'000 + i));
  }
  for (int i = 0; i < kApart; ++i) {  // libzmq reads each into a buffer of its own
    for (RawPeer& stranger : strangers) REQUIRE(stranger.Send(frame));
    std::this_thread::sleep_for(milliseconds(20));
  }
  for (RawPeer& stranger : strangers) REQUIRE(stranger.Send(batch));
  std::this_thread::sleep_for(milliseconds(300));  // no more comes in
  REQUIRE(before > 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(ResidentBytes() - before <= kStrangers * (177 << 10));
#endif
  for (int i = 0; i < kStrangers * (kApart + kTogether); ++i) {
    CHECK(ReceiveSoon(*server.channel).message.header.size() == kBytes);
  }
}

// A frame fills libzmq's buffer, so that few others are read with those that wait.
TEST_CASE("connection guard: eight messages of a stranger wait, and of a task no more") {
  ConnectionGuard::Limits limits = WideLimits();
  limits.stranger_bytes = 100 * kMiB;
  Server server(limits);
  server.channel->SetKnown(0x3130303030303032, true);
  constexpr int kBytes = 8000;
  const std::string frame = std::string("\2\0\0\0\0\0\0\x1f\x40", 9) + std::string(kBytes, 'x');
  std::string many;
  for (int i = 0; i < 40; ++i) many += frame;
  for (const char* id : {"10000001", "10000002"}) {
    CAPTURE(id);
    RawPeer peer(server.address);
    REQUIRE(peer.ShakeHands(id).Send(many));
    std::this_thread::sleep_for(milliseconds(200));
    const int64_t taken = peer.BytesTaken() / kBytes;
    CHECK(taken >= 8);
    CHECK(taken <= 10);  // with what is in the buffer, and one that does not find room
  }
}

TEST_CASE("connection guard: strangers that have gone count as long as nobody takes what they sent") {
  ConnectionGuard::Limits limits = WideLimits();
  limits.strangers = 160;
  Server server(limits);
  constexpr int kComing = 200;
  int came = 0;
  for (; came < kComing; ++came) {
    RawPeer stranger(server.address);
    if (!stranger.IsGreeted(milliseconds(500))) break;
    stranger.SendReady(std::to_string(10'000'000 + came)).Send(std::string("\0\5hello", 7));
    std::this_thread::sleep_for(milliseconds(10));  // the guard looks
  }
  CHECK(came >= 20);
  CHECK((came < kComing) == SystemHasFilters());
  server.Loop();
  RawPeer late(server.address);
  CHECK(late.IsGreeted(kPatience));
  server.EndLoop();
}

// A channel that gets a message each time that it waits never sees by itself that no other one was there.
TEST_CASE(
    "connection guard: strangers that have gone make room for others though a task always has a message") {
  ConnectionGuard::Limits limits = WideLimits();
  limits.strangers = 8;
  Server server(limits);
  Client task(server);
  server.channel->SetKnown(task.id, true);
  server.Serve(*task.channel, task.id);
  server.Loop(milliseconds(1000));
  std::atomic<bool> stop{false};
  std::thread asks([&] {
    while (!stop) {
      Message message = TextMessage("ask");
      task.channel->Send(task.id, message);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  const TimePoint begun = Clock::now();
  int came = 0;
  while (came < 20 && SecondsSince(begun) < 10 && RawPeer(server.address).IsGreeted(kPatience)) ++came;
  CHECK(came == 20);
  stop = true;
  asks.join();
  server.EndLoop();
}

TEST_CASE("connection guard: a connection that nobody gets to know ends, and so does one that is forgotten") {
  ConnectionGuard::Limits limits;
  limits.stranger_age = milliseconds(200);
  Server server(limits);
  Client client(server);
  server.channel->SetKnown(client.id, true);
  server.Serve(*client.channel, client.id);
  RawPeer silent(server.address), idle(server.address);
  idle.ShakeHands("12345678");
  CHECK(silent.IsClosed());
  CHECK(idle.IsClosed());
  server.Serve(*client.channel, client.id);
  std::this_thread::sleep_for(milliseconds(400));
  server.Serve(*client.channel, client.id);
  CHECK(client.channel->Connections(client.id) == 1);
  server.channel->SetKnown(client.id, false);
  server.Loop();
  const TimePoint deadline = Clock::now() + kPatience;
  NodeId from;
  Message message;
  while (client.channel->Connections(client.id) == 1 && Clock::now() < deadline) {
    client.channel->Receive(Clock::now() + milliseconds(20), &from, &message);
  }
  CHECK(client.channel->Connections(client.id) > 1);
  server.EndLoop();
}

TEST_CASE("connection guard: too many strangers make room, and a task that comes is served") {
  ConnectionGuard::Limits limits = WideLimits();
  limits.strangers = 200;
  Server server(limits);
  Client early(server);
  server.channel->SetKnown(early.id, true);
  server.Serve(*early.channel, early.id);
  constexpr int kStrangers = 600;
  std::list<RawPeer> strangers;
  for (int i = 0; i < kStrangers; ++i) strangers.emplace_back(server.address);
  // Each that is cut off comes again at once.
  std::atomic<bool> stop{false};
  int came_again = 0;
  std::thread attack([&] {
    while (!stop) {
      strangers.remove_if([](RawPeer& peer) { return peer.IsClosed(milliseconds(0)); });
      for (; strangers.size() < kStrangers; ++came_again) {
        strangers.emplace_back(server.address);
        strangers.back().Send("\xff");
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  const TimePoint begun = Clock::now();
  Client late(server);
  server.channel->SetKnown(late.id, true);
  server.Serve(*late.channel, late.id);
  while (SecondsSince(begun) < 1) server.Serve(*early.channel, early.id);
  stop = true;
  attack.join();
  CHECK(came_again > 0);
  CHECK(early.channel->Connections(early.id) == 1);
}

}  // namespace dtrain::net
