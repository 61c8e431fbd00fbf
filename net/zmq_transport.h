// ZmqTransport: channels over TCP, by ZeroMQ. It owns the ZeroMQ context and its I/O threads. Owner: the
// command; it outlives its channels. Thread: any.
#pragma once

#include <memory>

#include "net/channel.h"
#include "net/zmq_options.h"

namespace dtrain::net {

class ZapHandler;

class ZmqTransport final : public Transport {
 public:
  explicit ZmqTransport(const ZmqOptions& options = {});
  // Waits until the messages of closed channels are sent, at most linger_ms, whatever the peers do. A name
  // look-up in progress can make it longer, as long as the system's resolver takes; a process that cannot
  // wait for that ends with _exit().
  ~ZmqTransport() override;
  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;

  std::unique_ptr<Channel> NewChannel() override;

 private:
  const ZmqOptions options_;
  void* const context_;
  std::unique_ptr<ZapHandler> zap_handler_;  // with keys
};

}  // namespace dtrain::net
