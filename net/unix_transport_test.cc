// What a peer can do to a channel over a Unix socket: bytes of any form and in any pieces, and its end in the
// middle of a message.
#include "net/unix_transport.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "net/channel_test_util.h"
#include "net/codec.h"
#include "net/tcp.h"

namespace dtrain::net {
namespace {

using UnixPair = Pair<UnixKind>;

// As docs/wire.md has it.
std::string Head(const char* magic, uint32_t header_bytes, uint64_t rest) {
  std::string head(magic, 4);
  head.append(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
  return head.append(reinterpret_cast<const char*>(&rest), sizeof(rest));
}

std::string Greeting(NodeId id) { return Head("dTu1", 0, id); }

// RawPeer: a socket of somebody who writes what he likes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress to = Resolve(ParseAddress(address)).addresses.at(0);
    REQUIRE(connect(fd_, to.get(), to.size) == 0);
  }
  ~RawPeer() { close(fd_); }
  void Write(const std::string& bytes) {
    REQUIRE(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  // Whether the other side has ended the connection, after `channel` has had time to do so.
  bool Ended(Channel& channel) {
    const TimePoint deadline = Clock::now() + kPatience;
    while (Clock::now() < deadline) {
      NodeId from = 0;
      Message message;
      CHECK(channel.Receive(Clock::now() + milliseconds(1), &from, &message) == ReceiveResult::kTimeout);
      char byte;
      const ssize_t got = recv(fd_, &byte, 1, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
    }
    return false;
  }

 private:
  const int fd_;
};

void CheckStillServes(UnixPair& pair) {
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("still there?")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.server).header() == "still there?");
}

size_t OpenDescriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace

TEST_CASE("unix channel: answers to many short messages come all and in order, together or one by one") {
  UnixPair pair;
  for (int round = 0; round < 50; ++round) {
    const int count = 1 + round;  // up to more than are written together
    for (int i = 0; i < count; ++i) {
      const std::string payload(i % 7 == 6 ? 5000 : 8, 'x');  // some are not short
      REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(std::to_string(i), payload)) == SendResult::kSent);
    }
    for (int i = 0; i < count; ++i) {
      const Received message = ReceiveSoon(*pair.server);
      REQUIRE(message.header() == std::to_string(i));
      REQUIRE(SendSoon(*pair.server, pair.id, TextMessage(message.header(), message.payload())) ==
              SendResult::kSent);
    }
    NodeId from = 0;
    Message none;
    CHECK(pair.server->Receive(Clock::now(), &from, &none) == ReceiveResult::kTimeout);
    for (int i = 0; i < count; ++i) REQUIRE(ReceiveSoon(*pair.client).header() == std::to_string(i));
  }
  const ChannelStats sent = pair.server->stats(), received = pair.client->stats();
  CHECK(sent.bytes_sent == received.bytes_received);
}

TEST_CASE("unix channel: who sends anything but messages is cut off and counted, others are not") {
  const NodeId id = NewNodeId();
  const uint64_t too_large = (uint64_t{1} << 30) + 1;
  UnixPair pair;
  uint64_t dropped = 0;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string(64, '\xff'), Greeting(1), Greeting(0),
        Head("dTu1", 1, id), Head("dTum", 4, 0) + "word", Greeting(id) + Greeting(id),
        Greeting(id) + Head("dTum", 0, 0), Greeting(id) + Head("dTum", kMaxHeaderBytes + 1, 0),
        Greeting(id) + Head("dTum", 4, too_large) + "word", Greeting(id) + Head("dTum", 4, UINT64_MAX)}) {
    CAPTURE(bytes);
    RawPeer peer(pair.address);
    peer.Write(bytes);
    CHECK(peer.Ended(*pair.server));
    CHECK(pair.server->stats().frames_dropped == ++dropped);
    CheckStillServes(pair);
  }
}

TEST_CASE("unix channel: nobody takes the name of a conversation that this channel has made") {
  UnixPair pair;
  UnixPair other;
  pair.server->Connect(other.id + 2, other.address);
  RawPeer peer(pair.address);
  peer.Write(Greeting(other.id + 2));
  CHECK(peer.Ended(*pair.server));
  CHECK(pair.server->stats().frames_dropped == 1);
}

TEST_CASE("unix channel: a message arrives whole in whatever pieces it comes") {
  UnixPair pair;
  const NodeId id = NewNodeId();
  const std::string large_header(kMaxHeaderBytes, 'h');
  RawPeer peer(pair.address);
  const std::string bytes =
      Greeting(id) + Head("dTum", 6, 7) + "header" + "payload" + Head("dTum", 4, 0) + "next";
  for (const char byte : bytes) {
    peer.Write(std::string(1, byte));
    NodeId from = 0;
    Message message;
    if (pair.server->Receive(TimePoint(), &from, &message) != ReceiveResult::kMessage) continue;
    CHECK(from == id);
    CHECK((message.header.text() == "header" || message.header.text() == "next"));
    CHECK(message.payload.text() == (message.header.text() == "header" ? "payload" : ""));
  }
  std::thread sender([&] {
    auto client = pair.transport->NewChannel();
    client->Connect(id + 2, pair.address);
    CHECK(SendSoon(*client, id + 2, TextMessage(large_header, "after it")) == SendResult::kSent);
  });
  const Received large = ReceiveSoon(*pair.server);
  sender.join();
  CHECK((large.header() == large_header));
  CHECK(large.payload() == "after it");
  CHECK(pair.server->stats().frames_dropped == 0);
}

TEST_CASE("unix channel: who ends within a message and comes back is heard, and no descriptor is left") {
  UnixPair pair;
  const size_t before = OpenDescriptors();
  const NodeId id = NewNodeId();
  for (const size_t part : {3, 16, 20, 32, 36, 50}) {
    RawPeer peer(pair.address);
    const std::string bytes = Greeting(id) + Head("dTum", 6, 100'000) + "header";
    peer.Write((bytes + std::string(50, 'x')).substr(0, part));
    CheckStillServes(pair);
  }
  {
    auto again = pair.transport->NewChannel();
    again->Connect(id, pair.address);
    REQUIRE(SendSoon(*again, id, TextMessage("whole")) == SendResult::kSent);
    CHECK(ReceiveSoon(*pair.server).header() == "whole");
  }
  const TimePoint deadline = Clock::now() + kPatience;
  while (OpenDescriptors() != before && Clock::now() < deadline) {
    NodeId from = 0;
    Message message;
    pair.server->Receive(Clock::now() + milliseconds(1), &from, &message);
  }
  CHECK(OpenDescriptors() == before);
}

TEST_CASE("unix channel: an address that is no path is refused") {
  UnixTransport transport;
  auto channel = transport.NewChannel();
  CHECK_THROWS_WITH(channel->Bind("127.0.0.1:0"), doctest::Contains("not the path of a Unix socket"));
  CHECK_THROWS_WITH(channel->Connect(NewNodeId(), "127.0.0.1:7001"),
                    doctest::Contains("127.0.0.1:7001: cannot connect: not the path of a Unix socket"));
}

}  // namespace dtrain::net
