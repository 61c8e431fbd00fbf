// Sockets beside ZeroMQ, of TCP and Unix: name look-up, listening, and a probe that tells why a peer is
// missing. Thread: any.
#pragma once

#include <sys/socket.h>

#include <cstdint>
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
  std::string error;                     // the resolver's message if there are none
};

// Looks `address` up for TCP. A numeric address never waits. A name takes as long as the system's resolver,
// which is seconds if a name server is silent.
//
// IPv4 addresses come first: many systems give ::1 or a link-local IPv6 address for their own name although
// nothing listens there.
Resolved Resolve(const Address& address);

// Returns "127.0.0.1:9001", "[::1]:9001" or "unix:/a/path"; an empty text for another kind of socket.
std::string SocketAddressText(const SocketAddress& address);

// Listening TCP sockets are made here and not by libzmq: libzmq does not bind to names, and its errors do not
// distinguish a port in use from an address of another machine.

// Returns a descriptor that listens at `address`; the caller owns it. With port 0 the system chooses a port.
// Looks a name up, which may wait. Throws UserError with address, errno text and remedy.
int Listen(const std::string& address);

// Returns the address where `descriptor` listens. Throws UserError if it is not a listening socket.
std::string ListeningAddress(int descriptor);

// Raises the number of descriptors that this process may open to what the system allows, at most
// kMaxDescriptors. Returns it.
constexpr int64_t kMaxDescriptors = 65'536;
int64_t RaiseDescriptorLimit();

// The time until `deadline` for poll() and the like, an hour at most, rounded up so that it has passed
// afterwards; 0: it has passed.
int MillisecondsUntil(TimePoint deadline, TimePoint now);

// ProbeStatus: whether and why a TCP address does not answer. It is for the message that tells a user why a
// ps is missing; a Channel does not need it.
enum class ProbeStatus {
  kOpen,          // something accepts connections there
  kNameNotFound,  // the host's name is not known (yet)
  kRefused,       // the host answers, nothing listens at the port
  kNoAnswer,      // no answer: the host is down, or a firewall is between
  kOther,         // see text
};

struct ProbeResult {
  ProbeStatus status = ProbeStatus::kOther;
  std::string text;  // the system's message, such as "Connection refused (111)"; empty for kOpen
};

// Tries one connection to `address` and closes it. Waits up to `timeout` for the connection. The look-up of a
// name before that has no timeout and can take tens of seconds if a name server is silent, so call this from
// a thread that may wait. Throws UserError for a malformed address.
ProbeResult Probe(const std::string& address, milliseconds timeout);

}  // namespace dtrain::net
