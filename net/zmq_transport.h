// ZmqTransport: channels over TCP, by ZeroMQ. It owns the ZeroMQ context and its I/O threads. Owner: the
// command; it outlives its channels. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/channel.h"
#include "net/connection_guard.h"
#include "net/keys.h"

namespace dtrain::net {

class ZapHandler;

struct ZmqOptions {
  int io_threads = 1;
  // A peer that sends a longer frame is disconnected: the first limit is for conversations that this side
  // makes, the second for those that others make. Send() does not check: the code that cuts tensors into
  // messages does.
  int64_t max_message_bytes = int64_t{1} << 30;
  int64_t max_request_bytes = int64_t{1} << 30;
  // What those may hold who connect and are not known (Channel::SetKnown). Unset: what they like.
  std::optional<ConnectionGuard::Limits> guard;
  // The number of messages of one peer that may wait here to be sent, and in a conversation that this side
  // makes as many again to be received. Of others' conversations two wait here, and the rest at their side.
  int queue_messages = 64;
  // How long a closed channel may continue to send in the background.
  int linger_ms = 1000;
  // With keys every connection is encrypted, and only listed keys are let in. `servers`: by the address that
  // Connect() gets, the name of the listed key that the task there has.
  std::shared_ptr<KeyRing> keys;
  std::map<std::string, std::string> servers;
};

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
