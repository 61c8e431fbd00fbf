// HandshakeMonitor: tells why the connection of a socket does not come about, and whether libzmq has given it
// up. It begins before the socket is connected. Owner: ZmqChannel, which destroys it before the socket.
// Thread: that of the socket.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/keys.h"

namespace dtrain::net {

class HandshakeMonitor {
 public:
  // Throws IoError when too many files are open.
  HandshakeMonitor(void* context, void* socket);
  ~HandshakeMonitor();
  HandshakeMonitor(const HandshakeMonitor&) = delete;
  HandshakeMonitor& operator=(const HandshakeMonitor&) = delete;

  // Takes what has happened. It never waits.
  void Read();
  bool failed() const { return failure_ > Failure::kNone; }
  bool succeeded() const { return failure_ == Failure::kNone; }
  // Whether it has been connected for so long, and the handshake has not ended.
  bool Unanswered(milliseconds timeout) const;
  // Whether it has been connected for so long, and several times as long as a packet takes to and fro, and
  // the peer's kernel has acknowledged nothing: it lets in nobody (ConnectionGuard).
  bool Unacknowledged(milliseconds timeout) const;
  // libzmq does not try again.
  bool given_up() const { return failed() && failure_ != Failure::kClosed; }
  // Returns why the latest handshake has failed; empty: it has not. `keys`: of this task, may be null.
  std::string Text(const KeyRing* keys) const;

 private:
  enum class Failure {
    kUnknown,    // no handshake has ended
    kNone,       // it was good
    kRefused,    // the peer does not list this task's key
    kMechanism,  // one side has keys, the other has none
    kProtocol,   // the peer breaks the protocol
    kClosed,     // the peer has closed the connection
  };

  void* const socket_;
  const std::unique_ptr<void, int (*)(void*)> events_;
  Failure failure_ = Failure::kUnknown;
  std::optional<TimePoint> unanswered_since_;  // when Read() saw that it is connected
  int descriptor_ = -1;                        // of that connection
};

}  // namespace dtrain::net
