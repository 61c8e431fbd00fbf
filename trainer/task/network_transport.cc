#include "trainer/task/network_transport.h"

#include "net/zmq_transport.h"

namespace dtrain {
namespace {

// Twice the largest train.in_flight: those requests, and their repeats. What a queue does not take waits in
// Conversation and Outbox.
constexpr int kQueueMessages = 128;

}  // namespace

std::unique_ptr<net::Transport> NewNetworkTransport(const NetConfig& config) {
  net::ZmqOptions options;
  options.max_message_bytes = config.max_message_mb << 20;
  options.queue_messages = kQueueMessages;
  return std::make_unique<net::ZmqTransport>(options);
}

}  // namespace dtrain
