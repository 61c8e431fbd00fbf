// One side of an attack's row in the report: attacks a task for some seconds at a rate of its own, or takes
// as much processor time without attacking; or is a plain ZeroMQ ROUTER, or the client that counts its
// answers.
//   attack frames|hellos|handshakes|idle SECONDS ADDRESS RATE CONFIG    `idle`: RATE connections are held
//   attack burn SECONDS FRACTION                                        of one processor
//   attack router ADDRESS
//   attack ping ADDRESS                                                 a line on standard error: how many
// The first two print a JSON object: what was sent, and the processor time.
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "cmd/testing/attacker.h"
#include "trainer/config/load.h"

namespace dtrain::bench {
namespace {

using testing::RawPeer;

constexpr milliseconds kTick{10};
constexpr milliseconds kPatience{1000};
constexpr int kPeers = 20;   // that send frames and Hellos
constexpr int kThreads = 4;  // that open connections
constexpr int kPingsALine = 50;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// Calls `send(n)` each tick with how many are due, until the end; how many there were.
template <typename Send>
int64_t Pace(double seconds, double rate, Send&& send) {
  const TimePoint begun = Clock::now();
  int64_t sent = 0;
  while (SecondsSince(begun) < seconds) {
    const auto due = static_cast<int64_t>(SecondsSince(begun) * rate);
    if (due > sent && !send(due - sent)) break;
    sent = std::max(sent, due);
    std::this_thread::sleep_for(kTick);
  }
  return sent;
}

int64_t SendFrames(double seconds, const std::string& address, double rate, const std::string& frame) {
  std::vector<RawPeer> peers;
  for (int i = 0; i < kPeers; ++i) {
    peers.emplace_back(address);
    peers.back().Handshake();
  }
  size_t turn = 0;
  return Pace(seconds, rate, [&](int64_t due) {
    std::vector<std::string> batches(peers.size());
    for (; due > 0; --due) batches[turn++ % peers.size()] += frame;
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i].Write(batches[i], kPatience)) continue;
      peers[i] = RawPeer(address);  // in the place of one that was cut off
      peers[i].Handshake();
    }
    return true;
  });
}

int64_t OpenAndClose(double seconds, const std::string& address, double rate) {
  std::vector<std::thread> threads;
  std::vector<int64_t> opened(kThreads);
  for (int64_t& count : opened) {
    threads.emplace_back([&] {
      count = Pace(seconds, rate / kThreads, [&](int64_t due) {
        for (; due > 0; --due) RawPeer(address).Handshake(net::NewNodeId(), kPatience);
        return true;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t sum = 0;
  for (const int64_t count : opened) sum += count;
  return sum;
}

int64_t Hold(double seconds, const std::string& address, double connections) {
  DT_CHECK(testing::RaiseFileLimit(static_cast<uint64_t>(2 * connections)));
  const testing::Holder holder(address, static_cast<int>(connections));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return holder.opened();
}

// The Hello of worker 0, which is there.
std::string HelloFrame(const std::string& config) {
  testing::HelloWords words;
  words.settings = RunSettings(LoadConfig(config, {}, {}));
  return testing::ZmtpFrame(testing::EncodeHello(words).header.text());
}

int64_t Attack(const std::string& kind, double seconds, const std::string& address, double rate,
               const std::string& config) {
  if (kind == "frames") return SendFrames(seconds, address, rate, testing::ZmtpFrame("no message of dtrain"));
  if (kind == "hellos") return SendFrames(seconds, address, rate, HelloFrame(config));
  if (kind == "handshakes") return OpenAndClose(seconds, address, rate);
  DT_CHECK(kind == "idle", kind);
  return Hold(seconds, address, rate);
}

int64_t Burn(double seconds, double fraction) {
  const double before = ProcessorSeconds();
  const TimePoint begun = Clock::now();
  while (SecondsSince(begun) < seconds) {
    while (ProcessorSeconds() - before < fraction * SecondsSince(begun)) {
    }
    std::this_thread::sleep_for(kTick / 10);
  }
  return 0;
}

void* NewSocket(int type) {
  static void* const context = zmq_ctx_new();
  void* const socket = zmq_socket(context, type);
  DT_CHECK(socket != nullptr, errno);
  return socket;
}

// Answers each message with itself, until it is killed.
int Router(const std::string& address) {
  void* const socket = NewSocket(ZMQ_ROUTER);
  DT_CHECK(zmq_bind(socket, ("tcp://" + address).c_str()) == 0, address, errno);
  while (true) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    if (zmq_msg_recv(&part, socket, 0) < 0) continue;
    const int more = zmq_msg_more(&part) != 0 ? ZMQ_SNDMORE : 0;
    if (zmq_msg_send(&part, socket, more) < 0) zmq_msg_close(&part);
  }
}

// Asks and waits for the answer, until it is killed.
int Ping(const std::string& address) {
  void* const socket = NewSocket(ZMQ_DEALER);
  DT_CHECK(zmq_connect(socket, ("tcp://" + address).c_str()) == 0, address, errno);
  const std::string question(100, 'x');
  char answer[200];
  for (int64_t count = 1;; ++count) {
    zmq_send(socket, question.data(), question.size(), 0);
    while (zmq_recv(socket, answer, sizeof answer, 0) < 0) {
    }
    if (count % kPingsALine == 0) fmt::print(stderr, "local step {}\n", count);
  }
}

int Main(const std::vector<std::string>& words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string& kind = words.at(0);
  if (kind == "router") return Router(words.at(1));
  if (kind == "ping") return Ping(words.at(1));
  const double seconds = std::stod(words.at(1));
  const int64_t sent = kind == "burn"
                           ? Burn(seconds, std::stod(words.at(2)))
                           : Attack(kind, seconds, words.at(2), std::stod(words.at(3)), words.at(4));
  fmt::print("{{\"sent\": {}, \"processor_s\": {:.6f}}}\n", sent, ProcessorSeconds());
  return 0;
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) { return dtrain::bench::Main({argv + 1, argv + argc}); }
