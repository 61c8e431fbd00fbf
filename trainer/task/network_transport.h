// The transport between processes, with the settings of the config.
#pragma once

#include <memory>

#include "net/channel.h"
#include "trainer/config/config.h"

namespace dtrain {

// Channels over TCP. The destructor waits for messages on their way, for a bounded time whatever the peers
// do, except during a name look-up (net/zmq_transport.h).
std::unique_ptr<net::Transport> NewNetworkTransport(const NetConfig& config);

}  // namespace dtrain
