#include <doctest/doctest.h>
#include <sys/time.h>

#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "net/channel.h"
#include "net/channel_test_util.h"

TYPE_TO_STRING(dtrain::net::ZmqKind);
TYPE_TO_STRING(dtrain::net::InprocKind);
TYPE_TO_STRING(dtrain::net::UnixKind);

namespace dtrain::net {
namespace {

// Sends until the peer takes no more and seems to have stopped reading; returns how many it took.
int SendUntilFull(Channel& channel, NodeId peer, std::vector<std::unique_ptr<Loaned>>* loans, size_t bytes) {
  int sent = 0;
  for (int refused_in_a_row = 0; refused_in_a_row < 20;) {
    loans->push_back(std::make_unique<Loaned>(std::string(bytes, 'x')));
    Message message = TextMessage(std::to_string(sent));
    message.payload = loans->back()->Lend();
    const SendResult result = channel.Send(peer, message);
    REQUIRE(result != SendResult::kGone);
    if (result == SendResult::kSent) {
      ++sent;
      refused_in_a_row = 0;
      continue;
    }
    ++refused_in_a_row;
    CHECK(message.header.text() == std::to_string(sent));  // unchanged, and still the caller's
    CHECK(message.payload.size() == bytes);
    CHECK(loans->back()->releases() == 0);
    NodeId from = 0;
    Message unexpected;
    CHECK(channel.Receive(Clock::now() + milliseconds(5), &from, &unexpected) == ReceiveResult::kTimeout);
  }
  return sent;
}

}  // namespace

TEST_CASE("NewNodeId: ids differ, leave the lowest bit free and never begin with a zero byte") {
  std::set<NodeId> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewNodeId());
  CHECK(ids.size() == 1000);
  for (const NodeId id : ids) {
    CHECK((id >> 56) != 0);
    CHECK((id & 1) == 0);
  }
}

TEST_CASE_TEMPLATE("channel: a conversation has the same id at both ends", Kind, ZmqKind, InprocKind,
                   UnixKind) {
  auto transport = Kind::NewTransport();
  auto server = transport->NewChannel();
  auto client = transport->NewChannel();
  const NodeId id = 0x0102030405060708;
  client->Connect(id, server->Bind(Kind::AnyAddress()));
  REQUIRE(SendSoon(*client, id, TextMessage("to the server", "payload")) == SendResult::kSent);
  const Received at_server = ReceiveSoon(*server);
  CHECK(at_server.from == id);
  CHECK(at_server.header() == "to the server");
  CHECK(at_server.payload() == "payload");
  REQUIRE(SendSoon(*server, id, TextMessage("to the client")) == SendResult::kSent);
  const Received at_client = ReceiveSoon(*client);
  CHECK(at_client.from == id);
  CHECK(at_client.header() == "to the client");
  CHECK(at_client.message.payload.empty());
}

TEST_CASE_TEMPLATE("channel: messages of one and two frames arrive whole and in order, however full it gets",
                   Kind, ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  constexpr int kMessages = 3000;
  const auto payload_of = [](int i) {
    return i % 3 == 0 ? std::string() : std::string((i * 37) % 9000 + 1, 'a' + i % 26);
  };
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) {
      if (SendSoon(*pair.client, pair.id, TextMessage(std::to_string(i), payload_of(i))) != SendResult::kSent)
        return;
    }
  });
  int wrong = 0;
  for (int i = 0; i < kMessages; ++i) {
    const Received received = ReceiveSoon(*pair.server);
    if (received.header() != std::to_string(i) || received.payload() != payload_of(i)) ++wrong;
  }
  sender.join();
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("channel: lent bytes are given back once, and not before they are read", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  std::vector<std::unique_ptr<Loaned>> loans;
  {
    Pair<Kind> pair;
    for (size_t size = 1; size < 300'000; size = size * 3 / 2 + 1) {
      const std::string bytes(size, static_cast<char>('a' + size % 26));
      loans.push_back(std::make_unique<Loaned>(bytes));
      Message message = TextMessage("lent");
      message.payload = loans.back()->Lend();
      REQUIRE(SendSoon(*pair.client, pair.id, std::move(message)) == SendResult::kSent);
      CHECK(ReceiveSoon(*pair.server).payload() == bytes);
    }
  }
  for (const auto& loan : loans) CHECK(loan->releases() == 1);
}

TEST_CASE_TEMPLATE("channel: bytes lent to two peers are given back after both", Kind, ZmqKind, InprocKind,
                   UnixKind) {
  Loaned loan(std::string(100'000, 'w'));
  {
    Pair<Kind> pair;
    const NodeId second = NewNodeId();
    pair.client->Connect(second, pair.address);
    REQUIRE(SendSoon(*pair.client, second, TextMessage("hello")) == SendResult::kSent);
    ReceiveSoon(*pair.server);
    Message one = TextMessage("one");
    one.payload = loan.Lend();
    Message two = TextMessage("two");
    two.payload = one.payload.Share();
    REQUIRE(SendSoon(*pair.server, pair.id, std::move(one)) == SendResult::kSent);
    const std::string first_payload = ReceiveSoon(*pair.client).payload();
    CHECK(loan.releases() == 0);
    REQUIRE(SendSoon(*pair.server, second, std::move(two)) == SendResult::kSent);
    CHECK(first_payload == std::string(100'000, 'w'));
    CHECK(ReceiveSoon(*pair.client).payload() == first_payload);
  }
  CHECK(loan.releases() == 1);
}

TEST_CASE_TEMPLATE("channel: a payload of 64 MiB arrives", Kind, ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  std::string bytes(64 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); i += 4093) bytes[i] = static_cast<char>(i);
  Message message = TextMessage("large");
  message.payload = Frame::Lend(bytes.data(), bytes.size(), nullptr, nullptr);
  REQUIRE(SendSoon(*pair.client, pair.id, std::move(message)) == SendResult::kSent);
  const Received received = ReceiveSoon(*pair.server, pair.client.get());
  CHECK((received.message.payload.text() == bytes));
}

TEST_CASE_TEMPLATE("channel: a peer that never reads fills its queue, and reading makes room again", Kind,
                   ZmqKind, InprocKind, UnixKind) {
  std::vector<std::unique_ptr<Loaned>> loans;
  int sent = 0;
  {
    Pair<Kind> pair;
    sent = SendUntilFull(*pair.server, pair.id, &loans, 100'000);
    CHECK(sent >= 16);
    CHECK(sent < 1000);
    for (int i = 0; i < sent; ++i) {
      CHECK(ReceiveSoon(*pair.client, pair.server.get()).header() == std::to_string(i));
    }
    CHECK(SendSoon(*pair.server, pair.id, TextMessage("more")) == SendResult::kSent);
    CHECK(ReceiveSoon(*pair.client).header() == "more");
  }
  for (const auto& loan : loans) CHECK(loan->releases() == 1);
}

TEST_CASE_TEMPLATE("channel: a peer that always has another message waiting keeps nobody else out", Kind,
                   ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  // More than is read with one call; their length divides no buffer.
  const std::string text(301, 'f');
  for (int i = 0; i < 48; ++i) {
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(text)) == SendResult::kSent);
  }
  const auto other = pair.transport->NewChannel();
  const NodeId id = NewNodeId();
  other->Connect(id, pair.address);
  REQUIRE(SendSoon(*other, id, TextMessage("hello")) == SendResult::kSent);
  const TimePoint deadline = Clock::now() + kPatience;
  bool heard = false;
  for (int64_t taken = 0; !heard && Clock::now() < deadline; ++taken) {
    heard = ReceiveSoon(*pair.server).header() == "hello";
    // libzmq's threads take some time; the others' messages are there.
    if (!std::is_same_v<Kind, ZmqKind>) REQUIRE(taken < 1000);
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(text)) == SendResult::kSent);
  }
  CHECK(heard);
}

TEST_CASE_TEMPLATE("channel: what nobody has read is given back when the channels end", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  std::vector<std::unique_ptr<Loaned>> loans;
  {
    Pair<Kind> to_server;
    SendUntilFull(*to_server.client, to_server.id, &loans, 100'000);
    Pair<Kind> to_client;
    SendUntilFull(*to_client.server, to_client.id, &loans, 100'000);
  }
  for (const auto& loan : loans) CHECK(loan->releases() == 1);
}

TEST_CASE_TEMPLATE("channel: an unknown peer is gone", Kind, ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  Message message = TextMessage("anybody?", "payload");
  CHECK(pair.server->Send(NewNodeId(), message) == SendResult::kGone);
  CHECK(pair.client->Send(NewNodeId(), message) == SendResult::kGone);
  CHECK(message.header.text() == "anybody?");
  CHECK(message.payload.text() == "payload");
}

// The end of a connection is news that travels, so the first messages may still be taken.
template <typename Kind>
void CheckGoneSoon(Pair<Kind>& pair) {
  const TimePoint deadline = Clock::now() + kPatience;
  Message message = TextMessage("there?");
  while (pair.server->Send(pair.id, message) != SendResult::kGone) {
    REQUIRE(Clock::now() < deadline);
    message = TextMessage("there?");
    NodeId from = 0;
    Message unexpected;
    pair.server->Receive(Clock::now() + milliseconds(1), &from, &unexpected);
  }
  CHECK(message.header.text() == "there?");
}

TEST_CASE_TEMPLATE("channel: a peer whose channel ended is gone", Kind, ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  pair.client.reset();
  CheckGoneSoon(pair);
}

TEST_CASE_TEMPLATE("channel: a peer that disconnected is gone, and its last words arrive", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("bye")) == SendResult::kSent);
  pair.client->Disconnect(pair.id);
  CHECK(ReceiveSoon(*pair.server).header() == "bye");
  CheckGoneSoon(pair);
  Message message = TextMessage("late");
  CHECK(pair.client->Send(pair.id, message) == SendResult::kGone);
}

TEST_CASE_TEMPLATE("channel: who connects before anybody is bound gets through afterwards", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  typename Kind::Place place;
  auto transport = Kind::NewTransport();
  auto server = transport->NewChannel();
  auto client = transport->NewChannel();
  const NodeId id = NewNodeId();
  client->Connect(id, place.address());
  Message message = TextMessage("early");
  CHECK(client->Send(id, message) == SendResult::kFull);
  CHECK(message.header.text() == "early");
  place.Bind(*server);
  CHECK(SendSoon(*client, id, std::move(message)) == SendResult::kSent);
  CHECK(ReceiveSoon(*server).from == id);
}

TEST_CASE_TEMPLATE("channel: a conversation goes on when the bound side comes back", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  typename Kind::Place place;
  auto transport = Kind::NewTransport();
  auto client = transport->NewChannel();
  const NodeId id = NewNodeId();
  client->Connect(id, place.address());
  for (int life = 0; life < 3; ++life) {
    auto server = transport->NewChannel();
    place.Bind(*server);
    // What was on its way to the former server is lost, so the client repeats itself.
    Received received;
    const TimePoint deadline = Clock::now() + kPatience;
    while (received.header() != std::to_string(life)) {
      REQUIRE(Clock::now() < deadline);
      Message message = TextMessage(std::to_string(life));
      REQUIRE(client->Send(id, message) != SendResult::kGone);
      server->Receive(Clock::now() + milliseconds(5), &received.from, &received.message);
    }
    CHECK(received.from == id);
    CHECK(SendSoon(*server, id, TextMessage("welcome")) == SendResult::kSent);
    CHECK(ReceiveSoon(*client).header() == "welcome");
  }
}

TEST_CASE_TEMPLATE("channel: Receive comes back when a connection was broken and is there again", Kind,
                   ZmqKind, UnixKind) {
  typename Kind::Place place;
  auto transport = Kind::NewTransport();
  auto server = transport->NewChannel();
  place.Bind(*server);
  auto client = transport->NewChannel();
  const NodeId id = 0x6161616161616160;
  client->Connect(id, place.address());
  REQUIRE(SendSoon(*client, id, TextMessage("hello")) == SendResult::kSent);
  ReceiveSoon(*server);
  REQUIRE(SendSoon(*server, id, TextMessage("hello")) == SendResult::kSent);
  CHECK(ReceiveSoon(*client).header() == "hello");
  CHECK(client->Connections(id) == 1);
  server.reset();
  server = transport->NewChannel();
  place.Bind(*server);
  std::thread serving([&] { CHECK(ReceiveSoon(*server).header() == "again"); });
  NodeId from;
  Message message;
  CHECK(client->Receive(Clock::now() + kPatience, &from, &message) == ReceiveResult::kTimeout);
  CHECK(client->Connections(id) == 2);
  CHECK(SendSoon(*client, id, TextMessage("again")) == SendResult::kSent);
  serving.join();
  CHECK(client->Connections(id + 2) == 0);
  CHECK(client->stats().frames_dropped == 0);
}

TEST_CASE_TEMPLATE("channel: a signal ends Receive early, on one socket and on several", Kind, ZmqKind,
                   UnixKind) {
  typename Kind::Place nobody;
  auto transport = Kind::NewTransport();
  auto channel = transport->NewChannel();
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  struct sigaction former;
  sigaction(SIGALRM, &action, &former);
  channel->Bind(Kind::AnyAddress());
  for (int sockets = 1; sockets <= 2; ++sockets) {
    // Again and again, for the first may come before Receive waits. libzmq's threads block all signals.
    const itimerval every_20_ms = {{0, 20'000}, {0, 20'000}};
    setitimer(ITIMER_REAL, &every_20_ms, nullptr);
    const TimePoint deadline = Clock::now() + kPatience;
    NodeId from = 0;
    Message message;
    CHECK(channel->Receive(deadline, &from, &message) == ReceiveResult::kTimeout);
    CHECK(Clock::now() < deadline);
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    if (sockets == 1) channel->Connect(NewNodeId(), nobody.address());
  }
  sigaction(SIGALRM, &former, nullptr);
}

// Neither side reads before it has sent what it can, so neither may wait inside Send().
TEST_CASE_TEMPLATE("channel: two sides send each other 64 MiB at once", Kind, ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  constexpr int kMessages = 64;
  const std::string bytes(1 << 20, 'm');
  std::atomic<int> received{0};  // by both
  const auto exchange = [&](Channel& channel) {
    const TimePoint deadline = Clock::now() + kPatience;
    int sent = 0;
    while (received < 2 * kMessages && Clock::now() < deadline) {
      for (auto result = SendResult::kSent; sent < kMessages && result == SendResult::kSent;) {
        Message message = TextMessage("a part");
        message.payload = Frame::Lend(bytes.data(), bytes.size(), nullptr, nullptr);
        result = channel.Send(pair.id, message);
        if (result == SendResult::kSent) ++sent;
      }
      NodeId from = 0;
      Message message;
      const bool came =
          channel.Receive(Clock::now() + milliseconds(10), &from, &message) == ReceiveResult::kMessage;
      if (came && message.payload.text() == bytes) ++received;
    }
  };
  std::thread server([&] { exchange(*pair.server); });
  exchange(*pair.client);
  server.join();
  CHECK(received == 2 * kMessages);
}

TEST_CASE_TEMPLATE("channel: a newcomer under a known id takes the conversation over", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  auto second = pair.transport->NewChannel();
  second->Connect(pair.id, pair.address);
  REQUIRE(SendSoon(*second, pair.id, TextMessage("again")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.server).header() == "again");
  REQUIRE(SendSoon(*pair.server, pair.id, TextMessage("to the newcomer")) == SendResult::kSent);
  CHECK(ReceiveSoon(*second).header() == "to the newcomer");
}

TEST_CASE_TEMPLATE("channel: statistics count headers and payloads both ways", Kind, ZmqKind, InprocKind,
                   UnixKind) {
  Pair<Kind> pair;
  const ChannelStats before = pair.client->stats();
  CHECK(before.bytes_sent == 5);      // hello
  CHECK(before.bytes_received == 7);  // welcome
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("1234", std::string(1000, 'x'))) == SendResult::kSent);
  ReceiveSoon(*pair.server);
  CHECK(pair.client->stats().bytes_sent == before.bytes_sent + 1004);
  CHECK(pair.server->stats().bytes_received == before.bytes_sent + 1004);
  CHECK(pair.server->stats().bytes_sent == 7);
  CHECK(pair.server->stats().frames_dropped == 0);
}

TEST_CASE_TEMPLATE("channel: Receive polls under a past deadline and otherwise waits until it", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  NodeId from = 0;
  Message message;
  CHECK(pair.server->Receive(TimePoint::min(), &from, &message) == ReceiveResult::kTimeout);
  const TimePoint deadline = Clock::now() + milliseconds(30);
  CHECK(pair.server->Receive(deadline, &from, &message) == ReceiveResult::kTimeout);
  CHECK(Clock::now() >= deadline);
  auto unconnected = pair.transport->NewChannel();
  CHECK(unconnected->Receive(Clock::now() + milliseconds(1), &from, &message) == ReceiveResult::kTimeout);
}

TEST_CASE_TEMPLATE("channel: a message wakes a receiver that waits without a deadline", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  std::thread echo([&] {
    NodeId from = 0;
    Message message;
    while (pair.server->Receive(TimePoint::max(), &from, &message) == ReceiveResult::kMessage) {
      const bool last = message.header.text() == "last";
      if (SendSoon(*pair.server, from, std::move(message)) != SendResult::kSent || last) return;
    }
  });
  for (int i = 0; i < 200; ++i) {
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("ping")) == SendResult::kSent);
    CHECK(ReceiveSoon(*pair.client).header() == "ping");
  }
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("last")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.client).header() == "last");
  echo.join();
}

TEST_CASE_TEMPLATE("channel: a busy peer does not keep another from being heard", Kind, ZmqKind, InprocKind,
                   UnixKind) {
  auto transport = Kind::NewTransport();
  auto busy = transport->NewChannel();
  auto quiet = transport->NewChannel();
  auto client = transport->NewChannel();
  const NodeId busy_id = NewNodeId();
  const NodeId quiet_id = NewNodeId();
  client->Connect(busy_id, busy->Bind(Kind::AnyAddress()));
  client->Connect(quiet_id, quiet->Bind(Kind::AnyAddress()));
  REQUIRE(SendSoon(*client, busy_id, TextMessage("hello")) == SendResult::kSent);
  REQUIRE(SendSoon(*client, quiet_id, TextMessage("hello")) == SendResult::kSent);
  ReceiveSoon(*busy);
  ReceiveSoon(*quiet);
  REQUIRE(SendSoon(*quiet, quiet_id, TextMessage("a word")) == SendResult::kSent);
  bool heard = false;
  for (int i = 0; i < 2000 && !heard; ++i) {
    Message noise = TextMessage("noise");
    busy->Send(busy_id, noise);
    heard = ReceiveSoon(*client).from == quiet_id;
  }
  CHECK(heard);
}

TEST_CASE_TEMPLATE("channel: headers arrive aligned, whatever their neighbours' sizes", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  for (size_t size = 1; size < 200; ++size) {
    const std::string bytes(size, 'f');
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(bytes, std::string(3 * size, 'p'))) ==
            SendResult::kSent);
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(bytes)) == SendResult::kSent);
    for (int i = 0; i < 2; ++i) {
      const Received received = ReceiveSoon(*pair.server);
      CHECK(received.header() == bytes);
      CHECK(reinterpret_cast<uintptr_t>(received.message.header.data()) % kHeaderAlignment == 0);
      CHECK(received.payload() == (i == 0 ? std::string(3 * size, 'p') : ""));
    }
  }
}

TEST_CASE_TEMPLATE("channel: an address in use cannot be bound again", Kind, ZmqKind, InprocKind, UnixKind) {
  Pair<Kind> pair;
  auto second = pair.transport->NewChannel();
  std::string text;
  try {
    second->Bind(pair.address);
  } catch (const UserError& error) {
    text = error.what();
  }
  CHECK(text.find(pair.address + ": cannot listen: ") == 0);
  CHECK(text.find("cluster.ps") != std::string::npos);
}

TEST_CASE_TEMPLATE("channel: an address that is none is refused", Kind, ZmqKind, InprocKind, UnixKind) {
  auto transport = Kind::NewTransport();
  auto channel = transport->NewChannel();
  CHECK_THROWS_AS(channel->Bind("127.0.0.1"), UserError);
  CHECK_THROWS_AS(channel->Connect(NewNodeId(), "no port"), UserError);
  CHECK_THROWS_AS(channel->Connect(NewNodeId(), "127.0.0.1:0"), UserError);
}

TEST_CASE_TEMPLATE("channel: Serve() hands messages in order until its handler has enough", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  for (const char* text : {"1", "2", "3"}) {
    REQUIRE(SendSoon(*pair.client, pair.id, TextMessage(text)) == SendResult::kSent);
  }
  std::string seen;
  const TimePoint deadline = Clock::now() + kPatience;
  while (seen.size() < 2 && Clock::now() < deadline) {
    pair.server->Serve(deadline, [&](NodeId from, Message& message) {
      CHECK(from == pair.id);
      seen += message.header.text();
      return seen.size() < 2;
    });
  }
  CHECK(seen == "12");
  CHECK(ReceiveSoon(*pair.server).header() == "3");
}

// Its answers may leave together, but no later than it ends.
TEST_CASE_TEMPLATE("channel: all that a handler has sent leaves when Serve() ends", Kind, ZmqKind, InprocKind,
                   UnixKind) {
  Pair<Kind> pair;
  for (int round = 0; round < 50; ++round) {
    constexpr int kMessages = 8;
    for (int i = 0; i < kMessages; ++i) {
      REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("ask")) == SendResult::kSent);
    }
    int answered = 0;
    const auto handle = [&](NodeId from, Message&) {
      Message answer = TextMessage("answer");
      REQUIRE(pair.server->Send(from, answer) == SendResult::kSent);
      return ++answered < kMessages / 2;  // others are there
    };
    while (answered < kMessages / 2) pair.server->Serve(Clock::now() + milliseconds(100), handle);
    for (int i = 0; i < kMessages / 2; ++i) CHECK(ReceiveSoon(*pair.client).header() == "answer");
    for (int i = 0; i < kMessages / 2; ++i) ReceiveSoon(*pair.server);
  }
}

TEST_CASE_TEMPLATE("channel: Serve() ends at its deadline, and throws what its handler throws", Kind, ZmqKind,
                   InprocKind, UnixKind) {
  Pair<Kind> pair;
  pair.server->Serve(Clock::now() + milliseconds(1), [](NodeId, Message&) { return true; });
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("bad")) == SendResult::kSent);
  const TimePoint deadline = Clock::now() + kPatience;
  const auto serve = [&] {
    while (Clock::now() < deadline) {  // Serve() may return early
      pair.server->Serve(deadline, [](NodeId, Message&) -> bool { throw UserError("bad"); });
    }
  };
  CHECK_THROWS_AS(serve(), UserError);
}

}  // namespace dtrain::net
