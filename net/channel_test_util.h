// Helpers for the tests of channels. No wait here is longer than kPatience.
#pragma once

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/channel.h"
#include "net/inproc_transport.h"
#include "net/tcp.h"
#include "net/unix_transport.h"
#include "net/zmq_transport.h"

namespace dtrain::net {

constexpr auto kPatience = std::chrono::seconds(20);

inline Message TextMessage(const std::string& header, const std::string& payload = "") {
  Message message;
  message.header = Frame::Copy(header.data(), header.size());
  if (!payload.empty()) message.payload = Frame::Copy(payload.data(), payload.size());
  return message;
}

// Sends, and retries until the message is taken. No message may arrive meanwhile.
inline SendResult SendSoon(Channel& channel, NodeId peer, Message message) {
  const TimePoint deadline = Clock::now() + kPatience;
  while (true) {
    const SendResult result = channel.Send(peer, message);
    if (result != SendResult::kFull || Clock::now() > deadline) return result;
    NodeId from = 0;
    Message unexpected;
    REQUIRE(channel.Receive(Clock::now() + milliseconds(2), &from, &unexpected) == ReceiveResult::kTimeout);
  }
}

struct Received {
  NodeId from = 0;
  Message message;
  std::string header() const { return std::string(message.header.text()); }
  std::string payload() const { return std::string(message.payload.text()); }
};

// `sender`: a channel on this thread that may have to go on sending meanwhile.
inline Received ReceiveSoon(Channel& channel, Channel* sender = nullptr) {
  Received received;
  const TimePoint deadline = Clock::now() + kPatience;
  ReceiveResult result = ReceiveResult::kTimeout;
  while (result != ReceiveResult::kMessage && Clock::now() < deadline) {  // Receive() may return early
    if (sender != nullptr) {
      NodeId from = 0;
      Message unexpected;
      REQUIRE(sender->Receive(TimePoint(), &from, &unexpected) == ReceiveResult::kTimeout);
    }
    const TimePoint until = sender == nullptr ? deadline : Clock::now() + milliseconds(1);
    result = channel.Receive(until, &received.from, &received.message);
  }
  REQUIRE(result == ReceiveResult::kMessage);
  return received;
}

// Loaned: bytes that are overwritten when they are released, as the next gradient of a sender would do.
class Loaned {
 public:
  explicit Loaned(std::string bytes) : bytes_(std::move(bytes)) {}
  Frame Lend() { return Frame::Lend(bytes_.data(), bytes_.size(), &Loaned::Release, this); }
  int releases() const { return releases_.load(std::memory_order_acquire); }

 private:
  static void Release(void* /*data*/, void* context) {
    auto* self = static_cast<Loaned*>(context);
    std::fill(self->bytes_.begin(), self->bytes_.end(), '!');
    self->releases_.fetch_add(1, std::memory_order_release);
  }

  std::string bytes_;
  std::atomic<int> releases_{0};
};

// An address that is reserved but has no listener before Bind(). Bind() may be called again after its channel
// has ended.
struct ZmqKind {
  static std::string AnyAddress() { return "127.0.0.1:0"; }
  static std::unique_ptr<Transport> NewTransport() { return std::make_unique<ZmqTransport>(); }

  class Place {
   public:
    Place() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      REQUIRE(bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
      socklen_t size = sizeof(address);
      REQUIRE(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
      address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    }
    ~Place() { close(descriptor_); }
    const std::string& address() const { return address_; }
    void Bind(Channel& channel) {
      REQUIRE(listen(descriptor_, 16) == 0);
      CHECK(channel.BindDescriptor(dup(descriptor_)) == address_);
    }

   private:
    int descriptor_;
    std::string address_;
  };
};

struct InprocKind {
  static std::string AnyAddress() { return "127.0.0.1:0"; }
  static std::unique_ptr<Transport> NewTransport() { return std::make_unique<InprocTransport>(); }

  class Place {
   public:
    std::string address() const { return "ps-0:9001"; }
    void Bind(Channel& channel) { CHECK(channel.Bind(address()) == address()); }
  };
};

struct UnixKind {
  static std::unique_ptr<Transport> NewTransport() { return std::make_unique<UnixTransport>(); }

  // The address of a socket in a directory that is removed when the process ends.
  static std::string AnyAddress() {
    struct Directory {
      Directory() { REQUIRE(mkdtemp(path.data()) != nullptr); }
      ~Directory() { std::filesystem::remove_all(path); }
      std::string path = "/tmp/dtrain-channel-XXXXXX";
    };
    static const Directory directory;
    static int sockets = 0;
    return "unix:" + directory.path + "/" + std::to_string(++sockets);
  }

  class Place {
   public:
    const std::string& address() const { return address_; }
    void Bind(Channel& channel) {
      unlink(ParseAddress(address_).path.c_str());
      CHECK(channel.Bind(address_) == address_);
    }

   private:
    const std::string address_ = AnyAddress();
  };
};

// Pair: a bound channel and a channel connected to it. Each has received a message of the other.
template <typename Kind>
struct Pair {
  std::unique_ptr<Transport> transport = Kind::NewTransport();
  std::unique_ptr<Channel> server = transport->NewChannel();
  std::unique_ptr<Channel> client = transport->NewChannel();
  std::string address = server->Bind(Kind::AnyAddress());
  NodeId id = NewNodeId();

  Pair() {
    client->Connect(id, address);
    REQUIRE(SendSoon(*client, id, TextMessage("hello")) == SendResult::kSent);
    REQUIRE(ReceiveSoon(*server).header() == "hello");
    REQUIRE(SendSoon(*server, id, TextMessage("welcome")) == SendResult::kSent);
    REQUIRE(ReceiveSoon(*client).header() == "welcome");
  }
};

}  // namespace dtrain::net
