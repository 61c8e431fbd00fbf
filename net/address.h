// Addresses as users write them: "host:port", "10.0.0.1:9001", "[::1]:9001", and on one machine
// "unix:/a/path". Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::net {

struct Address {
  std::string host;  // a name, or a numeric address without brackets; localhost for a path
  uint16_t port = 0;
  bool is_ipv6 = false;  // host is a numeric IPv6 address
  bool is_name = false;  // host has to be looked up
  std::string path;      // of a Unix socket; empty: TCP
};

// Parses a user's text. Throws UserError with the text, the rule and a remedy. Port 0 is accepted, for
// listening.
Address ParseAddress(std::string_view text);

// Returns the address as users write it. Parsing it gives the same address.
std::string AddressText(const Address& address);

// Whether a text is the address of a Unix socket, right or wrong.
bool IsUnix(std::string_view text);

// Returns the endpoint for zmq_connect: "tcp://10.0.0.1:9001", "ipc:///a/path".
std::string ZmqEndpoint(const Address& address);

// Whether `host` (as in Address::host) names this machine only: 127.0.0.0/8, ::1 or localhost.
bool IsLoopback(std::string_view host);
// Whether `host` is 0.0.0.0 or ::, which means every address of a machine: one can listen there, not connect.
bool IsWildcard(std::string_view host);

}  // namespace dtrain::net
