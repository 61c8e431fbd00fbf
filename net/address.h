// Addresses as users write them: "host:port", "10.0.0.1:9001", "[::1]:9001". Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::net {

struct Address {
  std::string host;  // a name, or a numeric address without brackets
  uint16_t port = 0;
  bool is_ipv6 = false;  // host is a numeric IPv6 address
  bool is_name = false;  // host has to be looked up
};

// Throws UserError naming the text, the rule and a remedy. Port 0 is accepted: it is for listening.
Address ParseAddress(std::string_view text);

// As users write it: parsing the result gives the same address.
std::string AddressText(const Address& address);

// For zmq_connect: "tcp://10.0.0.1:9001".
std::string ZmqEndpoint(const Address& address);

// Whether `host` (as in Address::host) can be reached from this machine only: 127.0.0.0/8, ::1, localhost.
bool IsLoopback(std::string_view host);
// Whether it means every address of a machine, 0.0.0.0 or ::, to listen at and not to connect to.
bool IsWildcard(std::string_view host);

}  // namespace dtrain::net
