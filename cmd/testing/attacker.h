// Attackers: peers that keep to no rule, for tests of what a task holds out. They use raw sockets, so that
// nothing of dtrain's own side of a conversation stands between the test and the task.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/config/dump.h"
#include "trainer/peer/run_id.h"

namespace dtrain::testing {

// HelloWords: what a Hello says. Any content is sent as it is.
struct HelloWords {
  wire::Role role = wire::Role::Worker;
  uint32_t index = 0;
  uint32_t ps = 0;  // whom the sender believes to talk to
  Settings settings;
  std::string process = "stranger, pid 1";
  std::string address = "stranger:1";
  std::string version = "0";
  std::string host;
  std::string checkpoint_dir;  // empty: not told
  uint64_t incarnation = 1;
  uint32_t protocol = net::kProtocol;
};
net::Message EncodeHello(const HelloWords& words);

// Stranger: one conversation by a DEALER with a routing id of its choice. Thread: one.
class Stranger {
 public:
  // `receive_queue`: how many messages it takes from the network unread; 0: any number.
  explicit Stranger(const std::string& address, net::NodeId id = net::NewNodeId(), int receive_queue = 0);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // What all that it sends says of the run.
  void set_run(RunId run) { run_ = run; }
  RunId run() const { return run_; }
  net::NodeId id() const { return id_; }

  // Each waits for room for a few seconds; false: there was none.
  template <typename Build>
  bool Send(uint64_t request, Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    return Send(encoder_.Finish(run_.Envelope(request), build(builder)));
  }
  bool Send(const net::Message& message);
  bool SendBytes(std::string_view bytes);  // one frame

  // The next message; null: none comes, or the next one is not a message of dtrain.
  const wire::Envelope* Receive(milliseconds wait);
  // The next one of this kind, while others are passed over; null: none comes.
  template <typename Table>
  const Table* ReceiveA(milliseconds wait) {
    const TimePoint deadline = Clock::now() + wait;
    while (const wire::Envelope* envelope = Receive(Left(deadline))) {
      if (const Table* table = envelope->template body_as<Table>()) return table;
    }
    return nullptr;
  }
  // The message whose envelope Receive() returned last.
  const net::Message& message() const { return message_; }

  // Says Hello until it is welcomed, and takes over the run's id; false: it is not.
  bool Join(const HelloWords& words, milliseconds patience);

 private:
  static milliseconds Left(TimePoint deadline);

  const net::NodeId id_;
  void* const context_;
  void* const socket_;
  net::Encoder encoder_;
  net::Message message_;
  RunId run_;
};

// RawPeer: a TCP connection that speaks ZMTP by hand, as far as the test likes.
class RawPeer {
 public:
  // Connects, for at most 1 s; open() is false where nobody accepts it.
  explicit RawPeer(const std::string& address);
  ~RawPeer();
  RawPeer(RawPeer&& other) noexcept;
  RawPeer& operator=(RawPeer&& other) noexcept;
  bool open() const { return fd_ >= 0; }

  // The greeting of a DEALER.
  bool Greet() const;
  // Greeting and READY of a DEALER with this routing id; false where the other side does not say the same in
  // time.
  bool Handshake(net::NodeId id = net::NewNodeId(), milliseconds patience = milliseconds(5000)) const;
  // Writes all of it, for at most `patience`; false where it does not go.
  bool Write(std::string_view bytes, milliseconds patience) const;
  // Whether the other side closes the connection in time. What it sends is dropped.
  bool ClosedIn(milliseconds patience) const;

 private:
  int fd_ = -1;
};

// A ZMTP frame, whole; `more`: it is not the last one of its message.
std::string ZmtpFrame(std::string_view body, bool more = false);
// The head of a ZMTP frame that claims so many bytes.
std::string ZmtpClaim(uint64_t bytes, bool more = false);

// Flood: repeats an attack on a thread of its own, until this object is gone or the attack returns false.
class Flood {
 public:
  explicit Flood(std::function<bool()> attack);
  ~Flood();
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  int64_t times() const { return times_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> times_{0};
  std::thread thread_;
};

// Holder: keeps connections with a handshake, and opens another one for each that is closed.
class Holder {
 public:
  Holder(const std::string& address, int connections);
  int64_t opened() const { return opened_; }  // so far, those that were closed at once included

 private:
  std::atomic<int64_t> opened_{0};
  std::vector<std::unique_ptr<Flood>> floods_;
};

// Lets this process have so many open files; false: the system does not.
bool RaiseFileLimit(uint64_t files);

// Memory of a process in KiB, from /proc/PID/status: "VmRSS" is what it has now, "VmHWM" the largest that it
// had. 0 where it is gone.
int64_t MemoryKib(pid_t pid, const std::string& what);

}  // namespace dtrain::testing
