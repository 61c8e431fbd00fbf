// ZmqTransport: channels over TCP, by ZeroMQ. Owns the ZeroMQ context with its I/O threads.
// Owner: the command; it outlives its channels. Thread: any.
#pragma once

#include <cstdint>
#include <memory>

#include "net/channel.h"

namespace dtrain::net {

struct ZmqOptions {
  int io_threads = 1;
  // A peer that sends a longer frame is cut off. Send does not check: whoever cuts tensors into messages
  // does.
  int64_t max_message_bytes = int64_t{1} << 30;
  // Messages of one peer that may wait here for the wire, and as many again for Receive().
  int queue_messages = 64;
  // How long a closed channel may go on sending in the background.
  int linger_ms = 1000;
};

class ZmqTransport final : public Transport {
 public:
  explicit ZmqTransport(const ZmqOptions& options = {});
  // Waits until what closed channels have sent is on the wire, at most linger_ms, whatever the peers do. Only
  // a name look-up under way can make it longer, as long as the system's resolver takes: an exit that must
  // not wait for that ends with _exit().
  ~ZmqTransport() override;
  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;

  std::unique_ptr<Channel> NewChannel() override;

 private:
  const ZmqOptions options_;
  void* const context_;
};

}  // namespace dtrain::net
