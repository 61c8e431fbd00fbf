// What only TCP and ZeroMQ can do to a channel: strangers, stopped peers, signals, limits.
#include "net/zmq_transport.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "base/error.h"
#include "net/channel_test_util.h"
#include "net/tcp.h"

namespace dtrain::net {
namespace {

using ZmqPair = Pair<ZmqKind>;

constexpr double kLingerAndMargin = 1.0 + 1.5;  // the margin is for a machine that does other things too

// A ZeroMQ socket of somebody who has never read our code.
class Stranger {
 public:
  Stranger(const std::string& address, const std::string& routing_id)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_DEALER)) {
    const int linger_ms = 1000;
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    if (!routing_id.empty()) zmq_setsockopt(socket_, ZMQ_ROUTING_ID, routing_id.data(), routing_id.size());
    REQUIRE(zmq_connect(socket_, ("tcp://" + address).c_str()) == 0);
  }
  ~Stranger() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  void Send(const std::vector<std::string>& frames) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      REQUIRE(zmq_send(socket_, frames[i].data(), frames[i].size(), flags) >= 0);
    }
  }

 private:
  void* const context_;
  void* const socket_;
};

// Writes `bytes` to `address` over plain TCP; the connection stays open until the descriptor is closed.
int WriteRaw(const std::string& address, const std::string& bytes) {
  const Resolved resolved = Resolve(ParseAddress(address));
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(connect(descriptor, resolved.addresses[0].get(), resolved.addresses[0].size) == 0);
  REQUIRE(send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  return descriptor;
}

void CheckStillServes(ZmqPair& pair) {
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("still there?")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.server).header() == "still there?");
  REQUIRE(SendSoon(*pair.server, pair.id, TextMessage("yes")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.client).header() == "yes");
}

void WaitForDrops(Channel& channel, uint64_t count) {
  const TimePoint deadline = Clock::now() + kPatience;
  while (channel.stats().frames_dropped < count) {
    REQUIRE(Clock::now() < deadline);
    NodeId from = 0;
    Message message;
    CHECK(channel.Receive(Clock::now() + milliseconds(2), &from, &message) == ReceiveResult::kTimeout);
  }
  CHECK(channel.stats().frames_dropped == count);
}

// Fills the way to `peer`, which does not read.
int SendUntilStuck(Channel& channel, NodeId peer, size_t bytes = 1'000'000) {
  int sent = 0;
  for (int refused_in_a_row = 0; refused_in_a_row < 20;) {
    Message message = TextMessage("unread", std::string(bytes, 'x'));
    const SendResult result = channel.Send(peer, message);
    REQUIRE(result != SendResult::kGone);
    refused_in_a_row = result == SendResult::kSent ? 0 : refused_in_a_row + 1;
    sent += result == SendResult::kSent ? 1 : 0;
    NodeId from = 0;
    if (result == SendResult::kFull) channel.Receive(Clock::now() + milliseconds(5), &from, &message);
  }
  return sent;
}

// Deaf: a server whose answers may leave together, one client that asks it, and others that do not read what
// they are sent.
struct Deaf {
  static ZmqOptions ShortQueues() {
    ZmqOptions options;
    options.queue_messages = 8;
    return options;
  }
  struct Peer {
    std::unique_ptr<Channel> channel;
    NodeId id = NewNodeId();
    int unread = 0;
  };

  explicit Deaf(int deaf) : peers(static_cast<size_t>(deaf) + 1) {
    for (Peer& peer : peers) {
      peer.channel = transport.NewChannel();
      peer.channel->Connect(peer.id, address);
      REQUIRE(SendSoon(*peer.channel, peer.id, TextMessage("hello")) == SendResult::kSent);
      ReceiveSoon(*server);
    }
    bool found_room = true;  // a thread of libzmq that waits for a processor makes room late
    while (found_room) {
      found_room = false;
      for (size_t i = 1; i < peers.size(); ++i) {
        const int sent = SendUntilStuck(*server, peers[i].id, 100'000);
        peers[i].unread += sent;
        if (sent > 0) found_room = true;
      }
    }
  }
  Peer& asker() { return peers[0]; }
  bool Send(const Peer& peer, const std::string& text) {
    Message message = TextMessage(text);
    return server->Send(peer.id, message) == SendResult::kSent;
  }
  // The asker asks several times at once; each time `answer` has the turn.
  void Ask(const std::function<void()>& answer) {
    constexpr int kQuestions = 4;
    for (int i = 0; i < kQuestions; ++i)
      REQUIRE(SendSoon(*asker().channel, asker().id, TextMessage("ask")) == SendResult::kSent);
    int taken = 0;
    const auto take = [&](NodeId, Message&) {
      answer();
      return ++taken < kQuestions;
    };
    while (taken < kQuestions) server->Serve(Clock::now() + milliseconds(100), take);
  }

  ZmqTransport transport{ShortQueues()};
  std::unique_ptr<Channel> server = transport.NewChannel();
  const std::string address = server->Bind("127.0.0.1:0");
  std::vector<Peer> peers;
};

constexpr int kTries = 300;  // until an answer is held, which needs a thread that is not interrupted

}  // namespace

TEST_CASE("zmq channel: messages of the wrong shape are dropped and counted, and the channel goes on") {
  ZmqPair pair;
  Stranger without_id(pair.address, "");
  without_id.Send({"header"});
  WaitForDrops(*pair.server, 1);
  Stranger with_short_id(pair.address, "1234567");
  with_short_id.Send({"header", "payload"});
  WaitForDrops(*pair.server, 2);
  Stranger with_id(pair.address, "12345678");
  with_id.Send({"", "payload"});
  with_id.Send({"header", "payload", "third"});
  with_id.Send({"1", "2", "3", "4", "5"});
  WaitForDrops(*pair.server, 5);
  with_id.Send({""});  // as each connection begins
  with_id.Send({"header", "payload"});
  CHECK(ReceiveSoon(*pair.server).from == 0x3132333435363738);
  CheckStillServes(pair);
}

TEST_CASE("zmq channel: nobody takes the name of a conversation that this channel has made") {
  ZmqTransport transport;
  auto server = transport.NewChannel(), other = transport.NewChannel();
  const std::string address = server->Bind("127.0.0.1:0");
  server->Connect(0x6161616161616161, other->Bind("127.0.0.1:0"));
  Stranger stranger(address, "aaaaaaaa");
  stranger.Send({"an order"});
  WaitForDrops(*server, 1);
  REQUIRE(SendSoon(*server, 0x6161616161616161, TextMessage("hello")) == SendResult::kSent);
  CHECK(ReceiveSoon(*other).header() == "hello");
  REQUIRE(SendSoon(*other, 0x6161616161616161, TextMessage("an order")) == SendResult::kSent);
  CHECK(ReceiveSoon(*server).header() == "an order");
}

TEST_CASE("zmq channel: a client drops what a strange server sends") {
  ZmqTransport transport;
  auto client = transport.NewChannel();
  void* const context = zmq_ctx_new();
  void* const router = zmq_socket(context, ZMQ_ROUTER);
  const int mandatory = 1;
  zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &mandatory, sizeof(mandatory));
  REQUIRE(zmq_bind(router, "tcp://127.0.0.1:*") == 0);
  char endpoint[100];
  size_t size = sizeof(endpoint);
  zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, endpoint, &size);
  client->Connect(0x6161616161616161, std::string(endpoint).substr(6));
  REQUIRE(SendSoon(*client, 0x6161616161616161, TextMessage("hello")) == SendResult::kSent);
  // The router can send to a peer only once it has shaken hands with it: its first frame says so.
  const int patience_ms = static_cast<int>(std::chrono::duration_cast<milliseconds>(kPatience).count());
  zmq_setsockopt(router, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
  char hello[100];
  REQUIRE(zmq_recv(router, hello, sizeof(hello), 0) == 8);
  for (const int frames : {3, 1}) {
    REQUIRE(zmq_send(router, "aaaaaaaa", 8, ZMQ_SNDMORE) == 8);
    for (int i = 0; i < frames; ++i) zmq_send(router, "frame", 5, i + 1 < frames ? ZMQ_SNDMORE : 0);
  }
  CHECK(ReceiveSoon(*client).header() == "frame");
  CHECK(client->stats().frames_dropped == 1);
  zmq_close(router);
  zmq_ctx_term(context);
}

TEST_CASE("zmq channel: plain TCP, HTTP and garbage do not keep the channel from serving") {
  ZmqPair pair;
  std::string noise;
  for (unsigned i = 0; i < 100'000; ++i) noise += static_cast<char>(i * i * 31 >> 3);
  std::vector<int> descriptors;
  descriptors.push_back(WriteRaw(pair.address, "GET / HTTP/1.1\r\nHost: ps\r\n\r\n"));
  descriptors.push_back(WriteRaw(pair.address, noise));
  descriptors.push_back(WriteRaw(pair.address, ""));
  // A ZMTP 3.0 greeting whose mechanism nobody knows, and one of ZMTP 1 with a frame of 2^63 bytes.
  descriptors.push_back(
      WriteRaw(pair.address, std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12) + std::string(52, 'm')));
  descriptors.push_back(WriteRaw(pair.address, std::string("\1\0\xff\x80\0\0\0\0\0\0\0\0", 12) + noise));
  for (int i = 0; i < 20; ++i) CheckStillServes(pair);
  for (const int descriptor : descriptors) close(descriptor);
  CheckStillServes(pair);
}

TEST_CASE("zmq channel: what speaks ZMTP 1 or 2, as any byte of HTTP does, is cut off at once") {
  ZmqPair pair;
  const std::string signature("\xff\0\0\0\0\0\0\0\1\x7f", 10);
  for (const std::string& greeting : {std::string("\1\0", 2), std::string("GET / HTTP/1.1\r\n\r\n"),
                                      signature + std::string("\1\5\0\0", 4)}) {
    const int descriptor = WriteRaw(pair.address, greeting);
    char byte = 0;
    const timeval patience{5, 0};
    REQUIRE(setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
    ssize_t got = 1;
    while (got == 1) got = recv(descriptor, &byte, 1, 0);  // its own greeting, then the end
    const bool cut = got == 0 || errno == ECONNRESET;
    CHECK(cut);
    close(descriptor);
  }
  CheckStillServes(pair);
}

TEST_CASE("zmq channel: a peer that sends more than the limit is cut off, others are not") {
  ZmqOptions options;
  options.max_request_bytes = 10'000;
  ZmqTransport transport(options);
  auto server = transport.NewChannel();
  const std::string address = server->Bind("127.0.0.1:0");
  auto client = transport.NewChannel();
  const NodeId id = NewNodeId();
  client->Connect(id, address);
  REQUIRE(SendSoon(*client, id, TextMessage("fits", std::string(10'000, 'x'))) == SendResult::kSent);
  CHECK(ReceiveSoon(*server).payload().size() == 10'000);
  Stranger stranger(address, "12345678");
  stranger.Send({"header", std::string(10'001, 'x')});
  REQUIRE(SendSoon(*client, id, TextMessage("next")) == SendResult::kSent);
  CHECK(ReceiveSoon(*server).from == id);
}

// At an address that was bound a moment ago; empty where that is never let go.
std::string BindAgain(Channel& channel, const std::string& address) {
  const TimePoint deadline = Clock::now() + kPatience;
  while (Clock::now() < deadline) {
    try {
      return channel.Bind(address);
    } catch (const UserError&) {  // the I/O thread closes the socket in its own time
    }
  }
  return "";
}

TEST_CASE("zmq channel: while one peer has no room, answers to others leave together as before") {
  Deaf run(1);
  Deaf::Peer &asker = run.asker(), &deaf = run.peers[1];
  int kept = 0;
  for (int i = 0; i < kTries && kept == 0; ++i) {
    run.Ask([&] {
      for (int more = 0; more < 3 && run.Send(deaf, std::to_string(kept)); ++more) ++kept;
    });
  }
  REQUIRE(kept > 0);
  CHECK_FALSE(run.Send(deaf, "too late"));

  bool held = false;  // an answer that does not come while the next question is there
  for (int i = 0; i < kTries && !held; ++i) {
    int answers = 0, come = 0;
    run.Ask([&] {
      REQUIRE(run.Send(asker, std::to_string(answers++)));
      if (held) return;
      Received answer;
      held = asker.channel->Receive(Clock::now() + milliseconds(20), &answer.from, &answer.message) ==
             ReceiveResult::kTimeout;
      if (!held) CHECK(answer.header() == std::to_string(come++));
    });
    while (come < answers) CHECK(ReceiveSoon(*asker.channel).header() == std::to_string(come++));
  }
  CHECK(held);

  for (int i = 0; i < deaf.unread; ++i) {
    CHECK(ReceiveSoon(*deaf.channel, run.server.get()).header() == "unread");
  }
  for (int i = 0; i < kept; ++i) {
    CHECK(ReceiveSoon(*deaf.channel, run.server.get()).header() == std::to_string(i));
  }
}

TEST_CASE("zmq channel: what is kept for peers that have no room is bounded for all of them together") {
  constexpr size_t kMaxKept = 64;
  Deaf run(7);
  size_t kept = 0;
  for (int i = 0; i < kTries; ++i) {
    run.Ask([&] {
      const Deaf::Peer& peer = run.peers[1 + static_cast<size_t>(i) % 7];
      while (run.Send(peer, "answer")) ++kept;
    });
    CHECK(kept <= kMaxKept);
  }
  CHECK(kept == kMaxKept);
}

TEST_CASE("zmq channel: binding again works as soon as the former channel has let go") {
  ZmqTransport transport;
  auto first = transport.NewChannel();
  const std::string address = first->Bind("127.0.0.1:0");
  first.reset();
  auto second = transport.NewChannel();
  CHECK(BindAgain(*second, address) == address);
}

TEST_CASE("zmq channel: names and IPv6 addresses are served") {
  for (const char* place : {"localhost:0", "[::1]:0"}) {
    CAPTURE(place);
    ZmqTransport transport;
    auto server = transport.NewChannel();
    std::string address;
    try {
      address = server->Bind(place);
    } catch (const UserError& error) {
      MESSAGE("skipped: " << error.what());  // no IPv6 here
      continue;
    }
    const std::string port = address.substr(address.rfind(':'));
    const std::string host = std::string(place).substr(0, std::string(place).rfind(':'));
    auto client = transport.NewChannel();
    const NodeId id = NewNodeId();
    client->Connect(id, host + port);
    REQUIRE(SendSoon(*client, id, TextMessage("hello")) == SendResult::kSent);
    CHECK(ReceiveSoon(*server).from == id);
  }
}

TEST_CASE("zmq channel: an address that nobody answers holds up nobody else, and not the end") {
  const TimePoint begin = Clock::now();
  {
    ZmqPair pair;
    const NodeId nobody = NewNodeId();
    pair.client->Connect(nobody, "127.0.0.1:1");
    for (int i = 0; i < 50; ++i) {
      CheckStillServes(pair);
      Message message = TextMessage("anybody?");
      CHECK(pair.client->Send(nobody, message) == SendResult::kFull);
    }
  }
  CHECK(SecondsSince(begin) < 10);
}

TEST_CASE("zmq channel: where nobody answers a connection, another one is made") {
  const int listening = Listen("127.0.0.1:0");
  ZmqTransport transport;
  const auto client = transport.NewChannel();
  const NodeId id = NewNodeId();
  client->Connect(id, ListeningAddress(listening));
  int connections[2];
  for (int& connection : connections) {
    const TimePoint deadline = Clock::now() + kPatience;
    pollfd item{listening, POLLIN, 0};
    while (poll(&item, 1, 20) == 0 && Clock::now() < deadline) {
      Message message = TextMessage("ask");
      CHECK(client->Send(id, message) == SendResult::kFull);
    }
    REQUIRE(item.revents == POLLIN);
    connection = accept(listening, nullptr, nullptr);
  }
  for (const int connection : connections) close(connection);
  close(listening);
}

// How many connections to this port of 127.0.0.1 were begun and are not ended yet.
int ConnectionsTo(const std::string& address) {
  const std::string remote = fmt::format(" 0100007F:{:04X} 0", ParseAddress(address).port);
  std::ifstream table("/proc/net/tcp");
  int count = 0;
  for (std::string line; std::getline(table, line);) {
    // The numbers of a line: its own, the local address, the remote one, the state.
    const size_t local = line.find(": ") + 2, end = line.find(' ', local);
    if (end != std::string::npos && line.compare(end, remote.size(), remote) == 0) ++count;
  }
  return count;
}

// Drops what would complete a connection, as ConnectionGuard does. False: not on this system.
bool LetNobodyIn(int listening) {
  sock_filter only_first_packets[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 13},
                                      {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x12},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0x02},
                                      {BPF_RET | BPF_K, 0, 0, 0xffff'ffff},
                                      {BPF_RET | BPF_K, 0, 0, 0}};
  const sock_fprog program{5, only_first_packets};
  return setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

TEST_CASE("zmq channel: where the peer lets nobody in, another connection asks every moment") {
  const int listening = Listen("127.0.0.1:0");
  if (!LetNobodyIn(listening)) return;
  const std::string address = ListeningAddress(listening);
  ZmqTransport transport;
  const auto client = transport.NewChannel();
  const NodeId id = NewNodeId();
  const TimePoint begun = Clock::now();
  client->Connect(id, address);
  while (ConnectionsTo(address) < 5 && SecondsSince(begun) < 10) {
    Message message = TextMessage("ask");
    CHECK(client->Send(id, message) == SendResult::kFull);
    NodeId from = 0;
    client->Receive(Clock::now() + milliseconds(5), &from, &message);
  }
  CHECK(SecondsSince(begun) < 10);  // the fifth one would come after 15 s if each had its second to answer
  close(listening);
}

TEST_CASE("zmq transport: its end takes at most the linger time, though peers connect and never read") {
  ZmqTransport peers;
  auto reader = peers.NewChannel();
  TimePoint begin;
  {
    ZmqTransport transport;
    auto server = transport.NewChannel();
    const std::string address = server->Bind("127.0.0.1:0");
    const NodeId id = NewNodeId();
    reader->Connect(id, address);
    REQUIRE(SendSoon(*reader, id, TextMessage("hello")) == SendResult::kSent);
    ReceiveSoon(*server);
    SendUntilStuck(*server, id);
    begin = Clock::now();
  }
  CHECK(SecondsSince(begin) < kLingerAndMargin);
}

TEST_CASE("zmq transport: its end takes at most the linger time, though the peer's process is stopped") {
  int address_pipe[2];
  REQUIRE(pipe(address_pipe) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char address[100] = {};
    if (read(address_pipe[0], address, sizeof(address) - 1) <= 0) _exit(1);
    ZmqTransport transport;
    auto channel = transport.NewChannel();
    const NodeId id = NewNodeId();
    channel->Connect(id, address);
    if (SendSoon(*channel, id, TextMessage("hello")) != SendResult::kSent) _exit(1);
    pause();  // killed by the test
    _exit(0);
  }
  TimePoint begin;
  {
    ZmqTransport transport;
    auto server = transport.NewChannel();
    const std::string address = server->Bind("127.0.0.1:0");
    REQUIRE(write(address_pipe[1], address.data(), address.size()) == static_cast<ssize_t>(address.size()));
    const NodeId id = ReceiveSoon(*server).from;
    REQUIRE(kill(child, SIGSTOP) == 0);
    SendUntilStuck(*server, id);
    begin = Clock::now();
  }
  CHECK(SecondsSince(begin) < kLingerAndMargin);
  kill(child, SIGKILL);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  close(address_pipe[0]);
  close(address_pipe[1]);
}

}  // namespace dtrain::net
