// TCP beside ZeroMQ: names to socket addresses, listening sockets, and the probe that tells why a peer is
// missing. Thread: any.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/clock.h"
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

// Listening TCP sockets, made here and not by libzmq: libzmq binds no names, and its errors do not tell a
// taken port from a foreign address. Thread: any.

// A descriptor that listens at `address`; the caller owns it. Port 0: the system chooses. A name is looked
// up, which may wait. Throws UserError with address, errno text and remedy.
int Listen(const std::string& address);

// Where `descriptor` listens. Throws UserError when it is not a listening TCP socket.
std::string ListeningAddress(int descriptor);

// Probe: whether and why a TCP address does not answer. For the line that tells a user why a ps is missing;
// a Channel finds its way without it.
enum class ProbeStatus {
  kOpen,          // something accepts connections there
  kNameNotFound,  // the host's name is not known (yet)
  kRefused,       // the host answers, nothing listens at the port
  kNoAnswer,      // silence: host down, or a firewall between
  kOther,         // see text
};

struct ProbeResult {
  ProbeStatus status = ProbeStatus::kOther;
  std::string text;  // the system's words, such as "Connection refused (111)"; empty for kOpen
};

// Tries one connection to `address` and closes it. Waits up to `timeout` for the connection, and before that
// for the system's resolver, which heeds no timeout of ours: up to tens of seconds where a name server is
// silent. So call it from a thread that may wait. Throws UserError for a malformed address.
ProbeResult Probe(const std::string& address, milliseconds timeout);

}  // namespace dtrain::net
