// UnixTransport: channels between the processes of one user on one machine, over Unix stream sockets. A
// channel's own thread reads and writes them: there are no other threads to wake, and a message costs one or
// two system calls on each side. So bytes move only while the owner is in a call: what a peer has not read
// waits in the system's buffer and, beyond that, in the sender's queue. Wire format: docs/wire.md. There are
// no keys: who may open the socket's path may take part, but each message is checked. Owner: the
// command; it outlives its channels. Thread: any.
#pragma once

#include <cstdint>
#include <memory>

#include "net/channel.h"

namespace dtrain::net {

struct UnixOptions {
  // A peer that announces a larger payload is disconnected: the first limit is for conversations that this
  // side makes, the second for those that others make.
  int64_t max_message_bytes = int64_t{1} << 30;
  int64_t max_request_bytes = int64_t{1} << 30;
  size_t queue_messages = 64;  // how many messages for one peer may wait here
  // How long the end of a channel may wait for peers to read what was sent to them.
  milliseconds linger{1000};
};

class UnixTransport final : public Transport {
 public:
  explicit UnixTransport(const UnixOptions& options = {}) : options_(options) {}
  std::unique_ptr<Channel> NewChannel() override;

 private:
  const UnixOptions options_;
};

}  // namespace dtrain::net
