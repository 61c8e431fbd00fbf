// ZmqOptions: what a transport over TCP is told. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/connection_guard.h"
#include "net/keys.h"

namespace dtrain::net {

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
  // makes as many again to be received. Of others' conversations, without keys, eight wait here, and the rest
  // at their side.
  int queue_messages = 64;
  // How long a closed channel may continue to send in the background.
  int linger_ms = 1000;
  // With keys every connection is encrypted, and only listed keys are let in. `servers`: by the address that
  // Connect() gets, the name of the listed key that the task there has.
  std::shared_ptr<KeyRing> keys;
  std::map<std::string, std::string> servers;
};

}  // namespace dtrain::net
