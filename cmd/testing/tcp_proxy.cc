#include "cmd/testing/tcp_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace dtrain::testing {
namespace {

constexpr size_t kMaxWaiting = 1 << 20;  // of one direction

sockaddr_in Loopback(const std::string& address) {
  sockaddr_in socket_address{};
  socket_address.sin_family = AF_INET;
  socket_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto port = address.empty() ? 0 : std::stoi(address.substr(address.rfind(':') + 1));
  socket_address.sin_port = htons(static_cast<uint16_t>(port));
  return socket_address;
}

// With a reset: what the kernel still holds is lost, and the other end sees it at once.
void Break(int fd) {
  const linger none{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(fd);
}

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// -1 where nobody listens.
int ConnectTo(const std::string& target) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

bool MayComeAgain() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

TcpProxy::TcpProxy(const std::string& target)
    : target_(target),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_in address = Loopback("");
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  DT_CHECK(bind(listener_, generic, size) == 0 && listen(listener_, 64) == 0, errno);
  DT_CHECK(getsockname(listener_, generic, &size) == 0 && wake_ >= 0, errno);
  address_ = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    stop_ = true;
  }
  Wake();
  thread_.join();
  CloseAll();
  close(listener_);
  close(wake_);
}

void TcpProxy::Wake() const {
  const uint64_t one = 1;
  DT_CHECK(write(wake_, &one, sizeof one) == sizeof one, errno);
}

void TcpProxy::Cut() {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    cut_ = true;
  }
  Wake();
}

void TcpProxy::CutAfter(std::deque<int64_t> gaps) {
  const std::lock_guard<std::mutex> hold(mutex_);
  gaps_ = std::move(gaps);
}

void TcpProxy::Hold(bool hold) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    hold_ = hold;
  }
  Wake();
}

void TcpProxy::Refuse(bool refuse) {
  const std::lock_guard<std::mutex> hold(mutex_);
  refuse_ = refuse;
}

int64_t TcpProxy::cuts() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return cuts_;
}

bool TcpProxy::WaitForBytes(int64_t bytes, milliseconds patience) const {
  std::unique_lock<std::mutex> hold(mutex_);
  return changed_.wait_for(hold, patience, [&] { return bytes_ >= bytes; });
}

bool TcpProxy::WaitForRefused(int64_t connections, milliseconds patience) const {
  std::unique_lock<std::mutex> hold(mutex_);
  return changed_.wait_for(hold, patience, [&] { return refused_ >= connections; });
}

void TcpProxy::Run() {
  while (true) {
    bool held = false;
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      if (stop_) return;
      held = hold_;
      if (std::exchange(cut_, false)) {
        ++cuts_;
        CloseAll();
      }
    }
    std::vector<pollfd> fds = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& connection : connections_) {
      for (const Flow& flow : connection.flows) {
        const bool room = !held && !flow.ended && flow.waiting.size() < kMaxWaiting;
        fds.push_back({flow.from, static_cast<short>(room ? POLLIN : 0), 0});
        fds.push_back({flow.to, static_cast<short>(!held && !flow.waiting.empty() ? POLLOUT : 0), 0});
      }
    }
    poll(fds.data(), fds.size(), -1);
    uint64_t woken;
    if (read(wake_, &woken, sizeof woken) < 0) DT_CHECK(MayComeAgain(), errno);
    if (!held) Forward();
    if (fds[1].revents != 0) Accept();
  }
}

// All that can be moved now. A connection ends when one of its ends has, and what that one said is told.
void TcpProxy::Forward() {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    bool alive = true;
    for (Flow& flow : connection->flows) {
      if (!flow.ended) flow.ended = !Read(flow);
      bool cut = false;
      if (!Write(flow, &cut)) alive = false;
      if (cut) return CloseAll();
      if (flow.ended && flow.waiting.empty()) alive = false;
    }
    if (!alive) Close(*connection);
    connection = alive ? std::next(connection) : connections_.erase(connection);
  }
}

void TcpProxy::Accept() {
  const int from = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (from < 0) return;
  bool refuse = false;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    refuse = refuse_;
    if (refuse) ++refused_;
    changed_.notify_all();
  }
  const int to = refuse ? -1 : ConnectTo(target_);
  if (to < 0) return Break(from);
  fcntl(to, F_SETFL, fcntl(to, F_GETFL) | O_NONBLOCK);
  SendAtOnce(from);
  SendAtOnce(to);
  Connection connection;
  connection.flows[0].from = connection.flows[1].to = from;
  connection.flows[0].to = connection.flows[1].from = to;
  connections_.push_back(std::move(connection));
}

// False at the end of what comes.
bool TcpProxy::Read(Flow& flow) {
  char buffer[1 << 16];
  if (flow.waiting.size() >= kMaxWaiting) return true;
  const ssize_t got = recv(flow.from, buffer, sizeof buffer, 0);
  if (got > 0) flow.waiting.append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && MayComeAgain());
}

// False where the other end is gone. `cut`: a gap is over with these bytes.
bool TcpProxy::Write(Flow& flow, bool* cut) {
  if (flow.waiting.empty()) return true;
  const std::lock_guard<std::mutex> hold(mutex_);
  const int64_t left = gaps_.empty() ? std::numeric_limits<int64_t>::max() : gaps_.front();
  const auto size = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(flow.waiting.size())));
  const ssize_t put = send(flow.to, flow.waiting.data(), size, MSG_NOSIGNAL);
  if (put < 0) return MayComeAgain();
  flow.waiting.erase(0, static_cast<size_t>(put));
  bytes_ += put;
  changed_.notify_all();
  if (!gaps_.empty() && (gaps_.front() -= put) == 0) {
    gaps_.pop_front();
    ++cuts_;
    *cut = true;
  }
  return true;
}

void TcpProxy::Close(Connection& connection) {
  for (const Flow& flow : connection.flows) Break(flow.from);
}

void TcpProxy::CloseAll() {
  for (Connection& connection : connections_) Close(connection);
  connections_.clear();
}

}  // namespace dtrain::testing
