// ConnectionGuard: bounds what the connections of a listening ZeroMQ socket hold. libzmq counts neither
// connections nor the bytes of a message that is not whole, and gives no way to end one connection. The guard
// learns of each connection's descriptor by the socket's monitor, asks the kernel how much has come in, and
// shuts down the connections that break a limit; libzmq then frees what it kept for them. A task that was cut
// off by mistake connects again by itself and loses nothing, since requests are repeated.
//
// A connection is a stranger's until a message of a known conversation comes from it (Channel::SetKnown).
// Owner: ZmqChannel. Thread: the channel's, which is also the socket's; the limits are watched by another
// one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace dtrain::net {

class ConnectionGuard {
 public:
  struct Limits {
    // How many strangers are connected at once. While there are as many, further ones wait in the kernel, and
    // the oldest make room, at such a pace that each has half a second. While an eighth as many have gone and
    // the channel has not taken what they left, further ones wait, too.
    size_t strangers = 256;
    // How long a connection may stay a stranger's, and what it may send in that time.
    milliseconds stranger_age{10'000};
    uint64_t stranger_bytes = 64 << 10;
    uint32_t stranger_messages = 4000;
    // The bytes of one message; of a request there are fewer.
    uint64_t message_bytes = (1 << 20) + (256 << 10);
  };

  // Watches the connections of `router` from now on; call it before the socket is bound. `listening_fd`: what
  // it will accept them from; it stays open as long as the guard lives.
  ConnectionGuard(void* zmq_context, void* router, int listening_fd, const Limits& limits);
  ~ConnectionGuard();
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  // A message has come from the connection with this descriptor (ZMQ_SRCFD). `first`: it is the empty one
  // with which a connection begins. Costs nanoseconds.
  void Received(int fd, bool known, bool first);
  // Newcomers wait until the socket has run dry. A channel that is always given a message while it waits does
  // not see that: so it looks whether there is one before it waits.
  bool AsksIfDry() const { return asks_.load(std::memory_order_relaxed); }
  // The socket had no message, whether it was waited for or not. A channel that goes on waiting says so again
  // and again: newcomers may have to wait for that.
  void RanDry() { dry_.store(dry_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  // The conversation of this connection has become known, or is not known any more.
  void SetKnown(int fd, bool known);

 private:
  // What the channel's thread counts of a descriptor.
  struct Count {
    std::atomic<uint32_t> messages{0};
    // 0: it is not known. Otherwise for which peer it is, since the number of a connection that was known may
    // become another's before the thread has heard of either.
    std::atomic<uint64_t> known_peer{0};
  };
  // What the watching thread knows of a connection.
  struct Connection {
    uint64_t peer = 0;
    TimePoint stranger_since;     // since it was accepted, or is not known any more
    uint32_t first_message = 0;   // Count::messages then
    uint64_t first_byte = 0;      // what libzmq had read of it then
    bool known = false;           // and the fields below: at the last look
    uint32_t messages = 0;        // Count::messages
    uint64_t delivered = 0;       // what libzmq had read of it at the last look that saw a new message
    uint64_t consumed = 0;        // and at the last look behind which the channel had its turn
    uint64_t total = 0, dry = 0;  // the channel's counts then
    bool ended = false;
  };

  void Run();
  bool TakeEvents();
  milliseconds PauseOfLooks() const;
  void Look(TimePoint now);
  void MakeRoom(std::vector<std::pair<TimePoint, int>> strangers, TimePoint now);
  void ForgetTheTaken();
  bool HasRoom() const;
  void SetOpen(bool open);
  bool StrangerBreaksLimit(const Count& count, Connection& connection, uint64_t consumed,
                           TimePoint now) const;
  bool HoldsMoreThan(uint64_t limit, const Count& count, Connection& connection, uint64_t consumed) const;
  static void End(int fd, Connection& connection);
  Count* CountOf(int fd);

  const Limits limits_;
  void* const router_;
  const int listening_fd_;
  std::vector<Count> counts_;  // by descriptor
  std::atomic<uint64_t> total_{0}, dry_{0};
  std::atomic<bool> asks_{false};
  void* events_ = nullptr;                           // the monitor's socket; of the thread
  int stop_fd_ = -1;                                 // readable when the thread is to end
  std::unordered_map<int, Connection> connections_;  // this and the fields below: of the thread
  size_t strangers_ = 0;                             // at the last look, and accepted since
  size_t gone_ = 0;                                  // strangers that have gone since the channel's last turn
  size_t gone_before_ = 0;                           // and those between that turn and the one before
  uint64_t turn_total_ = 0, turn_dry_ = 0;           // the channel's counts at its last turn
  bool open_ = false;                                // whether the listening socket lets newcomers in
  TimePoint opens_;                                  // not before that
  std::thread thread_;
};

}  // namespace dtrain::net
