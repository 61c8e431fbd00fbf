#include "cmd/testing/attacker.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/testing/files.h"

namespace dtrain::testing {
namespace {

constexpr int kSendTimeoutMs = 5000;
constexpr timeval kConnectTimeout{1, 0};

template <typename Value>
void Set(void* socket, int option, Value value) {
  DT_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0, option, errno);
}

std::string RoutingId(net::NodeId id) {
  const uint64_t big_endian = htobe64(id);
  return std::string(reinterpret_cast<const char*>(&big_endian), sizeof big_endian);
}

// "127.0.0.1:40001".
sockaddr_in SocketAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  DT_CHECK(inet_pton(AF_INET, address.substr(0, colon).c_str(), &result.sin_addr) == 1, address);
  return result;
}

std::string Property(const std::string& name, const std::string& value) {
  const auto size = static_cast<char>(value.size());
  return static_cast<char>(name.size()) + name + std::string(3, '\0') + size + value;
}

// Whether the descriptor is ready for `events` in time.
bool IsReady(int fd, short events, TimePoint deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  pollfd item{fd, events, 0};
  return poll(&item, 1, static_cast<int>(std::max<int64_t>(left, 0))) > 0;
}

}  // namespace

net::Message EncodeHello(const HelloWords& words) {
  net::Encoder encoder;
  flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
  std::vector<flatbuffers::Offset<wire::Setting>> settings;
  for (const auto& [key, value] : words.settings) {
    settings.push_back(wire::CreateSetting(builder, builder.CreateString(key), builder.CreateString(value)));
  }
  const auto list = builder.CreateVector(settings);
  const auto address = builder.CreateString(words.address), process = builder.CreateString(words.process);
  const auto version = builder.CreateString(words.version), host = builder.CreateString(words.host);
  const auto directory = words.checkpoint_dir.empty() ? 0 : builder.CreateString(words.checkpoint_dir);
  return encoder.Finish({}, wire::CreateHello(builder, words.protocol, words.role, words.index, words.ps,
                                              address, process, version, list, words.incarnation, host, 1,
                                              directory, SettingsHash(words.settings)));
}

Stranger::Stranger(const std::string& address, net::NodeId id, int receive_queue)
    : id_(id), context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_DEALER)) {
  DT_CHECK(socket_ != nullptr, errno);
  const std::string routing_id = RoutingId(id);
  DT_CHECK(zmq_setsockopt(socket_, ZMQ_ROUTING_ID, routing_id.data(), routing_id.size()) == 0, errno);
  Set(socket_, ZMQ_LINGER, 0);
  Set(socket_, ZMQ_SNDTIMEO, kSendTimeoutMs);
  Set(socket_, ZMQ_RCVHWM, receive_queue);
  Set(socket_, ZMQ_RECONNECT_IVL, 20);
  if (receive_queue > 0) Set(socket_, ZMQ_RCVBUF, 4096);
  DT_CHECK(zmq_connect(socket_, ("tcp://" + address).c_str()) == 0, address, errno);
}

Stranger::~Stranger() {
  zmq_close(socket_);
  zmq_ctx_term(context_);
}

bool Stranger::Send(const net::Message& message) {
  const net::Frame &header = message.header, &payload = message.payload;
  const int more = payload.empty() ? 0 : ZMQ_SNDMORE;
  if (zmq_send(socket_, header.data(), header.size(), more) < 0) return false;
  return payload.empty() || zmq_send(socket_, payload.data(), payload.size(), 0) >= 0;
}

bool Stranger::SendBytes(std::string_view bytes) {
  return zmq_send(socket_, bytes.data(), bytes.size(), 0) >= 0;
}

milliseconds Stranger::Left(TimePoint deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(0));
}

const wire::Envelope* Stranger::Receive(milliseconds wait) {
  const TimePoint deadline = Clock::now() + wait;
  while (true) {
    Set(socket_, ZMQ_RCVTIMEO, static_cast<int>(Left(deadline).count()));
    net::Message received;
    int more = 0;
    size_t size = sizeof more;
    for (int frame = 0; frame == 0 || more != 0; ++frame) {
      net::Frame next;
      auto* const native = static_cast<zmq_msg_t*>(next.native());
      if (zmq_msg_recv(native, socket_, 0) < 0) return nullptr;
      DT_CHECK(zmq_getsockopt(socket_, ZMQ_RCVMORE, &more, &size) == 0, errno);
      // libzmq leaves small frames at any address in its buffer.
      (frame == 0 ? received.header : received.payload) = net::Frame::Copy(next.data(), next.size());
    }
    if (received.header.empty()) continue;  // a ps begins each connection with an empty frame
    message_ = std::move(received);
    return net::Decode(message_);
  }
}

bool Stranger::Join(const HelloWords& words, milliseconds patience) {
  const TimePoint deadline = Clock::now() + patience;
  const net::Message hello = EncodeHello(words);
  while (Clock::now() < deadline) {
    if (!Send(hello)) return false;
    if (ReceiveA<wire::Welcome>(milliseconds(100)) == nullptr) continue;  // an index in use may get free
    run_ = RunIdOf(*net::Decode(message_));
    return true;
  }
  return false;
}

RawPeer::RawPeer(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  DT_CHECK(fd_ >= 0, errno);
  DT_CHECK(setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kConnectTimeout, sizeof kConnectTimeout) == 0, errno);
  const sockaddr_in target = SocketAddress(address);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0) return;
  close(fd_);
  fd_ = -1;
}

RawPeer::RawPeer(RawPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RawPeer& RawPeer::operator=(RawPeer&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RawPeer::~RawPeer() {
  if (open()) close(fd_);
}

bool RawPeer::Greet() const {
  std::string greeting = "\xff" + std::string(8, '\0') + "\x7f\x03" + std::string(1, '\0') + "NULL";
  greeting.resize(64, '\0');
  return Write(greeting, milliseconds(kSendTimeoutMs));
}

// libzmq takes what follows READY for a part of the handshake until it has sent its own.
bool RawPeer::Handshake(net::NodeId id, milliseconds patience) const {
  const TimePoint deadline = Clock::now() + patience;
  const std::string ready =
      "\x05READY" + Property("Socket-Type", "DEALER") + Property("Identity", RoutingId(id));
  if (!Greet() || !Write(std::string("\x04") + static_cast<char>(ready.size()) + ready, patience))
    return false;
  std::string said;
  char bytes[256];
  while (said.find("READY") == std::string::npos) {
    if (!IsReady(fd_, POLLIN, deadline)) return false;
    const ssize_t got = recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    said.append(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return true;
}

bool RawPeer::Write(std::string_view bytes, milliseconds patience) const {
  const TimePoint deadline = Clock::now() + patience;
  while (!bytes.empty()) {
    if (!open() || !IsReady(fd_, POLLOUT, deadline)) return false;
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

bool RawPeer::ClosedIn(milliseconds patience) const {
  const TimePoint deadline = Clock::now() + patience;
  char dropped[4096];
  while (open()) {
    if (!IsReady(fd_, POLLIN, deadline)) return false;
    const ssize_t got = recv(fd_, dropped, sizeof dropped, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
  return true;
}

std::string ZmtpClaim(uint64_t bytes, bool more) {
  const char flags = more ? '\x01' : '\x00';
  if (bytes <= 255) return {flags, static_cast<char>(bytes)};
  const uint64_t big_endian = htobe64(bytes);
  std::string head(1, static_cast<char>(flags | 2));
  return head.append(reinterpret_cast<const char*>(&big_endian), sizeof big_endian);
}

std::string ZmtpFrame(std::string_view body, bool more) { return ZmtpClaim(body.size(), more).append(body); }

Flood::Flood(std::function<bool()> attack)
    : thread_([this, attack = std::move(attack)] {
        while (!stop_ && attack()) ++times_;
      }) {}

Flood::~Flood() {
  stop_ = true;
  thread_.join();
}

Holder::Holder(const std::string& address, int connections) {
  constexpr int kThreads = 4;
  for (int i = 0; i < kThreads; ++i) {
    const auto count = static_cast<size_t>((connections + i) / kThreads);
    const auto held = std::make_shared<std::list<RawPeer>>();  // a std::function is copied
    floods_.push_back(std::make_unique<Flood>([this, address, count, held] {
      while (held->size() == count) {
        if (held->front().ClosedIn(milliseconds(1))) {
          held->pop_front();
        } else {
          held->splice(held->end(), *held, held->begin());
          return true;
        }
      }
      held->emplace_back(address);
      held->back().Handshake(net::NewNodeId(), milliseconds(20));
      ++opened_;
      return true;
    }));
  }
}

bool RaiseFileLimit(uint64_t files) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, files));
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= files;
}

int64_t MemoryKib(pid_t pid, const std::string& what) {
  std::istringstream status(FileContent("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.compare(0, what.size() + 1, what + ":") == 0) return std::stoll(line.substr(what.size() + 1));
  }
  return 0;
}

}  // namespace dtrain::testing
