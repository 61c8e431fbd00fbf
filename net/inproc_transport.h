// InprocTransport: channels between threads of one process. Frames are moved, so a receiver reads lent bytes
// in place. A sender of a short message to a channel in Serve() runs its handler in Send(), if no other
// thread does; the message is answered before Send() returns, and no thread has to be woken for it. A sender
// that has other work meanwhile loses by that where the handler takes longer than a wake-up: see
// SendersGoOn(). Owner: the command or a test; it outlives its channels. Thread: any.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/channel.h"

namespace dtrain::net {

class InprocHub;

class InprocTransport final : public Transport {
 public:
  InprocTransport();
  ~InprocTransport() override;
  InprocTransport(const InprocTransport&) = delete;
  InprocTransport& operator=(const InprocTransport&) = delete;

  // From the next channel on: a sender leaves the message to the channel's own thread where messages have
  // lately taken longer than `longest` each. For senders that do not wait for the answer, on processors that
  // nobody else wants.
  void SendersGoOn(Clock::duration longest) { longest_turn_ = longest; }

  std::unique_ptr<Channel> NewChannel() override;

 private:
  Clock::duration longest_turn_ = Clock::duration::max();
  const std::unique_ptr<InprocHub> hub_;
};

}  // namespace dtrain::net
