// The transport between processes, set up as the config says.
#pragma once

#include <memory>

#include "net/channel.h"
#include "trainer/config/config.h"

namespace dtrain {

// Channels over TCP. Destroying it waits for what is still on its way, a bounded time whatever the peers do,
// except for a name look-up under way (net/zmq_transport.h).
std::unique_ptr<net::Transport> NewNetworkTransport(const NetConfig& config);

}  // namespace dtrain
