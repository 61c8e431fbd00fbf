// InprocTransport: channels between threads of one process. Frames are moved, so a receiver reads lent bytes
// in place. A sender of a short message to a channel in Serve() runs its handler in Send(), if no other
// thread does; the message is answered before Send() returns, and no thread has to be woken for it. Owner:
// the command or a test; it outlives its channels. Thread: any.
#pragma once

#include <memory>

#include "net/channel.h"

namespace dtrain::net {

class InprocHub;

class InprocTransport final : public Transport {
 public:
  InprocTransport();
  ~InprocTransport() override;
  InprocTransport(const InprocTransport&) = delete;
  InprocTransport& operator=(const InprocTransport&) = delete;

  std::unique_ptr<Channel> NewChannel() override;

 private:
  const std::unique_ptr<InprocHub> hub_;
};

}  // namespace dtrain::net
