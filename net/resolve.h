// Names to socket addresses.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "net/address.h"

namespace dtrain::net {

struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

struct Resolved {
  std::vector<SocketAddress> addresses;  // IPv4 first; empty: not found
  std::string error;                     // the resolver's words when there are none
};

// Looks `address` up for TCP. A numeric address never waits; a name can take as long as the system's
// resolver does, which is seconds where a name server is silent. Thread: any.
//
// IPv4 comes first because that is what everybody else means by a name: many systems give ::1 or a link-local
// IPv6 address for their own name although nothing listens there.
Resolved Resolve(const Address& address);

// "127.0.0.1:9001" or "[::1]:9001"; empty for another kind of socket.
std::string SocketAddressText(const SocketAddress& address);

}  // namespace dtrain::net
