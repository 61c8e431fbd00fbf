#include "net/inproc_transport.h"

#include "net/inproc_channel.h"
#include "net/inproc_hub.h"

namespace dtrain::net {

InprocTransport::InprocTransport() : hub_(std::make_unique<InprocHub>()) {}

InprocTransport::~InprocTransport() = default;

std::unique_ptr<Channel> InprocTransport::NewChannel() { return std::make_unique<InprocChannel>(*hub_); }

}  // namespace dtrain::net
