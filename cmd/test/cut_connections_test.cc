// Real processes whose connections are cut a hundred times while they train: requests and answers get lost
// half written, and every update is applied exactly once all the same.
#include <arpa/inet.h>
#include <doctest/doctest.h>
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
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/random.h"
#include "cmd/testing/job.h"

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

// TcpProxy: a network between two tasks: it forwards what comes in at its own address to another one, and can
// cut all connections, hold their bytes back, or refuse new ones. What is under way when a connection is cut
// is lost, at both ends. Thread: one of its own; all calls may come from any.
class TcpProxy {
 public:
  // `target`: "127.0.0.1:40001", where somebody need not listen yet.
  explicit TcpProxy(const std::string& target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;

  const std::string& address() const { return address_; }

  // Cuts all connections now.
  void Cut();
  // Cuts all connections each time when so many bytes more have gone through, in the middle of whatever that
  // is: once for each of `gaps`, the first counted from now.
  void CutAfter(std::deque<int64_t> gaps);
  // While true, nothing is forwarded and connections stay.
  void Hold(bool hold);
  // While true, new connections are closed as soon as they are made.
  void Refuse(bool refuse);

  int64_t cuts() const;
  // True when so many bytes have gone through, in both directions, by the deadline.
  bool WaitForBytes(int64_t bytes, milliseconds patience = kPatience) const;
  // True when so many new connections were refused by the deadline.
  bool WaitForRefused(int64_t connections, milliseconds patience = kPatience) const;

 private:
  // One direction of a connection.
  struct Flow {
    int from = -1;
    int to = -1;
    std::string waiting;  // read and not yet written
    bool ended = false;   // nothing more comes
  };
  struct Connection {
    Flow flows[2];
  };

  void Run();
  void Forward();
  void Accept();
  static bool Read(Flow& flow);
  bool Write(Flow& flow, bool* cut);
  static void Close(Connection& connection);
  void CloseAll();
  void Wake() const;

  const std::string target_;
  std::string address_;
  int listener_ = -1;
  int wake_ = -1;
  std::list<Connection> connections_;  // the thread's
  mutable std::mutex mutex_;           // for the fields below
  mutable std::condition_variable changed_;
  bool stop_ = false;
  bool cut_ = false;
  bool hold_ = false;
  bool refuse_ = false;
  int64_t cuts_ = 0;
  int64_t bytes_ = 0;
  int64_t refused_ = 0;
  std::deque<int64_t> gaps_;  // the first: what is left of it
  std::thread thread_;
};

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

constexpr int64_t kSteps = 2000;
constexpr int64_t kCuts = 100;

struct Case {
  int ps;
  int workers;
  std::string train;  // what is set of the section
};

std::string Job(const Case& job) {
  return fmt::format(
      "model: {{kind: linear, inputs: 40}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 2, steps: {}, {}}}\n"
      "failure: {{detect_s: 30}}\n"
      "net: {{checksum: true}}\n"
      "hooks: {{log_every_steps: 0}}\n",
      kSteps, job.train);
}

// A cluster whose workers reach each ps through a proxy.
class CutCluster {
 public:
  CutCluster(const Case& job, bool cut) : cluster_(job.ps, job.workers, Job(job)) {
    std::string addresses;
    for (int i = 0; i < job.ps; ++i) {
      proxies_.push_back(std::make_unique<TcpProxy>(cluster_.address("ps", i)));
      if (cut) proxies_.back()->CutAfter(Gaps(i, kCuts / job.ps));
      addresses += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", proxies_.back()->address());
    }
    for (int i = 0; i < job.ps; ++i) {
      tasks_.push_back(cluster_.Start("ps", i,
                                      {"--set", fmt::format("cluster.ps=[{}]", addresses), "--set",
                                       fmt::format("net.bind=\"{}\"", cluster_.address("ps", i))}));
    }
    for (int i = 0; i < job.workers; ++i) {
      std::vector<std::string> more = {"--set", fmt::format("cluster.ps=[{}]", addresses)};
      if (i == 0) more.insert(more.end(), {"--result", cluster_.directory() + "/result.json"});
      tasks_.push_back(cluster_.Start("worker", i, more));
    }
  }

  Json Result() {
    CheckEnds(tasks_);
    return ReadResult(cluster_.directory() + "/result.json");
  }
  TcpProxy& proxy(size_t ps) { return *proxies_[ps]; }
  int64_t cuts() const {
    int64_t sum = 0;
    for (const auto& proxy : proxies_) sum += proxy->cuts();
    return sum;
  }

 private:
  // A message and its answer are some 500 bytes; a new connection takes as many before the first one.
  static std::deque<int64_t> Gaps(int seed, int64_t count) {
    const CounterRandom random(static_cast<uint64_t>(seed));
    std::deque<int64_t> gaps;
    for (int64_t i = 0; i < count; ++i) {
      gaps.push_back(500 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(i), 6000)));
    }
    return gaps;
  }

  const Cluster cluster_;
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
  std::vector<std::unique_ptr<Process>> tasks_;
};

int64_t Sum(const Json& numbers) {
  int64_t sum = 0;
  for (const auto& number : numbers) sum += number.get<int64_t>();
  return sum;
}

// The run's result; null where it is not that of all steps.
Json RunCut(const Case& job) {
  CAPTURE(job.ps);
  CAPTURE(job.workers);
  CAPTURE(job.train);
  CutCluster cluster(job, /*cut=*/true);
  const Json result = cluster.Result();
  CHECK(cluster.cuts() == kCuts);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == kSteps);
  return result;
}

TEST_CASE("cut connections: in async every step is counted once") {
  for (const auto& [ps, in_flight] : {std::pair(1, 1), {2, 4}}) {
    const Json result = RunCut({ps, 2, fmt::format("mode: async, in_flight: {}", in_flight)});
    CHECK(Sum(result.at("local_steps")) == kSteps);
    CHECK(result.at("examples") == 2 * kSteps);
  }
}

TEST_CASE("cut connections: one worker, and sync, end with the weights of an undisturbed run, to the bit") {
  for (const Case& job : {Case{1, 1, "mode: async"}, Case{1, 2, "mode: sync"}}) {
    const Json uncut = CutCluster(job, /*cut=*/false).Result();
    for (const int ps : {1, 2}) {
      const Json result = RunCut({ps, job.workers, job.train});
      CHECK(result.at("model_crc") == uncut.at("model_crc"));
      CHECK(result.at("local_steps") == uncut.at("local_steps"));
    }
  }
}

TEST_CASE("cut connections: a run goes on when its network does, after it was held and refused connections") {
  CutCluster cluster({1, 2, "mode: sync"}, /*cut=*/false);
  TcpProxy& proxy = cluster.proxy(0);
  REQUIRE(proxy.WaitForBytes(50000));
  proxy.Hold(true);
  proxy.Refuse(true);
  proxy.Cut();
  CHECK(proxy.WaitForRefused(8));
  proxy.Refuse(false);
  proxy.Hold(false);
  const Json result = cluster.Result();
  REQUIRE(result.is_object());
  CHECK(result.at("local_steps") == Json({kSteps, kSteps}));
}

}  // namespace
}  // namespace dtrain::testing
