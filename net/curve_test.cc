// Channels with keys: who gets in, who is told what.
#include "net/curve.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <zmq.h>

#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "net/channel_test_util.h"
#include "net/handshake_monitor.h"

namespace dtrain::net {
namespace {

struct Cluster {
  KeyPair ps = NewKeyPair(), worker = NewKeyPair(), other = NewKeyPair();
  std::vector<ListedKey> listed = {
      {"ps 0", ps.public_key}, {"worker 0", worker.public_key}, {"worker 1", other.public_key}};
};

ZmqOptions OptionsOf(std::shared_ptr<KeyRing> keys, const std::string& address = "") {
  ZmqOptions options;
  options.keys = std::move(keys);
  options.servers[address] = "ps 0";
  return options;
}

std::shared_ptr<KeyRing> RingOf(const Cluster& cluster, const KeyPair& own, const std::string& name) {
  return std::make_shared<KeyRing>(own.secret_key, name, cluster.listed);
}

// A ps that listens with keys.
struct Listener {
  explicit Listener(const Cluster& cluster)
      : ring(RingOf(cluster, cluster.ps, "ps-0.key")),
        transport((ring->set_log([this](const std::string& line) {
          std::lock_guard<std::mutex> hold(mutex);
          log.push_back(line);
        }),
                   OptionsOf(ring))) {}
  std::vector<std::string> lines() {
    std::lock_guard<std::mutex> hold(mutex);
    return log;
  }

  std::mutex mutex;
  std::vector<std::string> log;
  std::shared_ptr<KeyRing> ring;
  ZmqTransport transport;
  std::unique_ptr<Channel> channel = transport.NewChannel();
  std::string address = channel->Bind("127.0.0.1:0");
};

// A task that connects with its keys; null: without.
struct Client {
  Client(const std::string& address, std::shared_ptr<KeyRing> keys)
      : transport(OptionsOf(std::move(keys), address)) {
    channel->Connect(id, address);
  }

  // Tries to send until the handshake has failed. Returns why.
  std::string WaitForRefusal() {
    const TimePoint deadline = Clock::now() + kPatience;
    std::string why;
    while ((why = channel->WhyNotConnected(id)).empty() && Clock::now() < deadline) {
      NodeId from = 0;
      Message message = TextMessage("let me in");
      CHECK(channel->Send(id, message) == SendResult::kFull);
      channel->Receive(Clock::now() + milliseconds(2), &from, &message);
    }
    return why;
  }

  // Tries to send for a time in which the refused connection is made anew. Returns all reasons that are told.
  std::set<std::string> Reasons() {
    std::set<std::string> reasons;
    for (const TimePoint end = Clock::now() + milliseconds(1200); Clock::now() < end;) {
      NodeId from = 0;
      Message message = TextMessage("let me in");
      CHECK(channel->Send(id, message) == SendResult::kFull);
      reasons.insert(channel->WhyNotConnected(id));
      channel->Receive(Clock::now() + milliseconds(2), &from, &message);
    }
    return reasons;
  }

  ZmqTransport transport;
  std::unique_ptr<Channel> channel = transport.NewChannel();
  NodeId id = NewNodeId();
};

bool Empty(Channel& channel) {
  NodeId from = 0;
  Message message;
  return channel.Receive(Clock::now(), &from, &message) == ReceiveResult::kTimeout;
}

TEST_CASE("keys: a listed key gets in, and each of its messages carries the key's number") {
  const Cluster cluster;
  Listener listener(cluster);
  Client client(listener.address, RingOf(cluster, cluster.worker, "worker-0.key"));
  const std::string payload(3'000'000, 'p');
  REQUIRE(SendSoon(*client.channel, client.id, TextMessage("hello")) == SendResult::kSent);
  REQUIRE(SendSoon(*client.channel, client.id, TextMessage("push", payload)) == SendResult::kSent);
  for (const char* header : {"hello", "push"}) {
    const Received received = ReceiveSoon(*listener.channel);
    CHECK(received.header() == header);
    CHECK(listener.ring->NameOf(received.message.key) == "worker 0");
    CHECK(received.from == client.id);
  }
  REQUIRE(SendSoon(*listener.channel, client.id, TextMessage("answer", payload)) == SendResult::kSent);
  const Received answer = ReceiveSoon(*client.channel);
  CHECK(answer.payload() == payload);
  CHECK(answer.message.key == 0);
  CHECK(client.channel->WhyNotConnected(client.id) == "");
  CHECK(listener.lines().empty());
}

TEST_CASE("keys: without keys a message has key 0") {
  Pair<ZmqKind> pair;
  REQUIRE(SendSoon(*pair.client, pair.id, TextMessage("one")) == SendResult::kSent);
  CHECK(ReceiveSoon(*pair.server).message.key == 0);
}

TEST_CASE("keys: a key that is not listed is refused, both sides say so, and it gets in once it is listed") {
  Cluster cluster;
  Listener listener(cluster);
  const KeyPair next = NewKeyPair();
  Cluster changed = cluster;
  changed.listed.push_back({"worker 0", next.public_key});
  Client client(listener.address, RingOf(changed, next, "worker-0.key"));
  const std::string refusal = "it refuses this task's key worker-0.key (not in its cluster.keys)";
  CHECK(client.WaitForRefusal() == refusal);
  CHECK(listener.lines() ==
        std::vector<std::string>{"refused a connection from 127.0.0.1: its key is not in cluster.keys here"});
  CHECK(Empty(*listener.channel));
  CHECK(client.Reasons() == std::set<std::string>{refusal});
  listener.ring->Replace(changed.listed);
  REQUIRE(SendSoon(*client.channel, client.id, TextMessage("now")) == SendResult::kSent);
  CHECK(ReceiveSoon(*listener.channel).header() == "now");
  CHECK(client.channel->WhyNotConnected(client.id) == "");
}

TEST_CASE("keys: a task that may open no more files keeps its refused connection, and gets in later") {
  Cluster cluster;
  Listener listener(cluster);
  const KeyPair next = NewKeyPair();
  Cluster changed = cluster;
  changed.listed.push_back({"worker 0", next.public_key});
  Client client(listener.address, RingOf(changed, next, "worker-0.key"));
  const std::string refusal = client.WaitForRefusal();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{3, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const std::set<std::string> reasons = client.Reasons();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(reasons == std::set<std::string>{refusal});
  listener.ring->Replace(changed.listed);
  CHECK(SendSoon(*client.channel, client.id, TextMessage("now")) == SendResult::kSent);
}

TEST_CASE("keys: a task waits for hundreds of ps that refuse it") {
  REQUIRE(RaiseDescriptorLimit() > 3000);
  const Cluster cluster;
  ZmqTransport server;
  auto listener = server.NewChannel();
  const std::string address = listener->Bind("127.0.0.1:0");  // without keys
  ZmqTransport transport(OptionsOf(RingOf(cluster, cluster.worker, "worker-0.key"), address));
  const auto channel = transport.NewChannel();
  std::vector<NodeId> ids(400);
  for (NodeId& id : ids) channel->Connect(id = NewNodeId(), address);
  for (const TimePoint end = Clock::now() + milliseconds(1200); Clock::now() < end;) {
    for (const NodeId id : ids) {
      NodeId from = 0;
      Message message = TextMessage("let me in");
      CHECK(channel->Send(id, message) == SendResult::kFull);
      channel->Receive(Clock::now(), &from, &message);
    }
  }
  CHECK(channel->WhyNotConnected(ids.back()).find("no keys") != std::string::npos);
}

TEST_CASE("keys: a listener whose key is not the listed one is not trusted, and gets nothing") {
  const Cluster cluster;
  Cluster impostor = cluster;
  impostor.ps = NewKeyPair();
  impostor.listed[0].key = impostor.ps.public_key;
  Listener listener(impostor);
  Client client(listener.address, RingOf(cluster, cluster.worker, "worker-0.key"));
  CHECK(client.WaitForRefusal() == "its key is not the one in cluster.keys here, or it has no keys");
  CHECK(Empty(*listener.channel));
}

TEST_CASE("keys: of two keys that are listed for a listener the right one is found") {
  const Cluster cluster;
  Listener listener(cluster);
  Cluster changing = cluster;
  changing.listed.insert(changing.listed.begin(), {"ps 0", NewKeyPair().public_key});
  Client client(listener.address, RingOf(changing, cluster.worker, "worker-0.key"));
  REQUIRE(SendSoon(*client.channel, client.id, TextMessage("hello")) == SendResult::kSent);
  CHECK(ReceiveSoon(*listener.channel).header() == "hello");
}

TEST_CASE("keys: a task without keys does not get in, and does not send anything to a listener with keys") {
  const Cluster cluster;
  Listener listener(cluster);
  Client client(listener.address, nullptr);
  CHECK(client.WaitForRefusal().find("this task has none (security.keys)") != std::string::npos);
  CHECK(Empty(*listener.channel));
}

TEST_CASE("keys: a task with keys does not talk to a listener without") {
  const Cluster cluster;
  ZmqTransport transport;
  auto listener = transport.NewChannel();
  Client client(listener->Bind("127.0.0.1:0"), RingOf(cluster, cluster.worker, "worker-0.key"));
  CHECK(client.WaitForRefusal().find("no keys") != std::string::npos);
  CHECK(Empty(*listener));
}

TEST_CASE("keys: what is said with a key is not heard once the key is removed from the list") {
  const Cluster cluster;
  Listener listener(cluster);
  Client client(listener.address, RingOf(cluster, cluster.worker, "worker-0.key"));
  Client stays(listener.address, RingOf(cluster, cluster.other, "worker-1.key"));
  REQUIRE(SendSoon(*client.channel, client.id, TextMessage("one")) == SendResult::kSent);
  CHECK(ReceiveSoon(*listener.channel).header() == "one");
  listener.ring->Replace({cluster.listed[0], cluster.listed[2]});
  REQUIRE(SendSoon(*client.channel, client.id, TextMessage("two")) == SendResult::kSent);
  const TimePoint deadline = Clock::now() + kPatience;
  while (listener.channel->stats().frames_dropped == 0 && Clock::now() < deadline)
    CHECK(Empty(*listener.channel));
  CHECK(listener.channel->stats().frames_dropped == 1);
  REQUIRE(SendSoon(*stays.channel, stays.id, TextMessage("three")) == SendResult::kSent);
  CHECK(ReceiveSoon(*listener.channel).header() == "three");
}

TEST_CASE("keys: a connection to a task whose key is not listed is an error of the user") {
  const Cluster cluster;
  auto ring = std::make_shared<KeyRing>(cluster.worker.secret_key, "worker-0.key",
                                        std::vector<ListedKey>{cluster.listed[1]});
  ZmqTransport transport(OptionsOf(ring, "127.0.0.1:9"));
  CHECK_THROWS_WITH_AS(
      transport.NewChannel()->Connect(NewNodeId(), "127.0.0.1:9"),
      "127.0.0.1:9: cluster.keys has no key of ps 0. Run dtrain keygen again, and give this machine "
      "the new list.",
      UserError);
}

// Context: a ZeroMQ context of a test.
struct Context {
  void* const context = zmq_ctx_new();
  ~Context() { zmq_ctx_term(context); }
};

// Socket: a plain ZeroMQ socket whose messages are dropped when it closes.
class Socket {
 public:
  Socket(const Context& context, int type) : socket_(zmq_socket(context.context, type)) {
    const int none = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof none);
  }
  ~Socket() { zmq_close(socket_); }
  void* get() const { return socket_; }

 private:
  void* const socket_;
};

// Sends one message to `endpoint` and waits for the end of the handshake. Returns whether it was refused.
bool IsRefused(const Context& context, const Socket& socket, const std::string& endpoint) {
  HandshakeMonitor monitor(context.context, socket.get());
  REQUIRE(zmq_connect(socket.get(), endpoint.c_str()) == 0);
  REQUIRE(zmq_send(socket.get(), "let me in", 9, 0) == 9);
  const TimePoint deadline = Clock::now() + kPatience;
  while (!monitor.failed() && !monitor.succeeded() && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
    monitor.Read();
  }
  REQUIRE(monitor.failed() != monitor.succeeded());
  return monitor.failed();
}

TEST_CASE("keys: a listener whose ZAP handler is missing or has ended lets nobody in") {
  const Cluster cluster;
  const auto ring = RingOf(cluster, cluster.ps, "ps-0.key");
  const auto worker = RingOf(cluster, cluster.worker, "worker-0.key");
  for (const bool handled : {true, false}) {
    CAPTURE(handled);
    std::optional<ZapHandler> handler;
    {
      const Context context, client;
      if (handled) handler.emplace(context.context, ring);
      const Socket router(context, ZMQ_ROUTER), dealer(client, ZMQ_DEALER);
      ListenWithKeys(router.get(), *ring);
      REQUIRE(zmq_bind(router.get(), "tcp://127.0.0.1:*") == 0);
      char endpoint[100];
      size_t size = sizeof endpoint;
      REQUIRE(zmq_getsockopt(router.get(), ZMQ_LAST_ENDPOINT, endpoint, &size) == 0);
      ConnectWithKeys(dealer.get(), *worker, cluster.ps.public_key);
      CHECK(IsRefused(client, dealer, endpoint) == !handled);
    }
  }
}

TEST_CASE("keys: a name and a password do not get in") {
  const Cluster cluster;
  Listener listener(cluster);
  const Context context;
  const Socket dealer(context, ZMQ_DEALER);
  zmq_setsockopt(dealer.get(), ZMQ_PLAIN_USERNAME, "admin", 5);
  zmq_setsockopt(dealer.get(), ZMQ_PLAIN_PASSWORD, "admin", 5);
  CHECK(IsRefused(context, dealer, "tcp://" + listener.address));
  CHECK(Empty(*listener.channel));
}

TEST_CASE("keys: the old protocols of ZeroMQ, which know no keys, are closed at once") {
  const Cluster cluster;
  Listener listener(cluster);
  const std::string signature("\xff\0\0\0\0\0\0\0\x01\x7f", 10);
  for (const std::string& greeting : {std::string("\x01\0", 2) + std::string("\x06\0hello", 7),   // ZMTP 1
                                      signature + std::string("\x01\x05\0\0\x06\0hello", 11)}) {  // ZMTP 2
    const Resolved resolved = Resolve(ParseAddress(listener.address));
    const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(descriptor, resolved.addresses[0].get(), resolved.addresses[0].size) == 0);
    REQUIRE(send(descriptor, greeting.data(), greeting.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(greeting.size()));
    const timeval patience{20, 0};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char bytes[1000];
    ssize_t got = 0;
    while ((got = recv(descriptor, bytes, sizeof bytes, 0)) > 0) {
    }
    CHECK((got == 0 || errno == ECONNRESET));
    close(descriptor);
  }
  CHECK(Empty(*listener.channel));
}

}  // namespace
}  // namespace dtrain::net
