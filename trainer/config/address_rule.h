// What the config demands of an address, on top of net/address.h.
#pragma once

#include <string>

namespace dtrain {

// Empty for a good "host:port"; otherwise rule and remedy: "an address needs a port. Write ...".
std::string AddressProblem(const std::string& text);

// The same text for two spellings of one address; empty where the system chooses the port, since two such
// are never one. The address is a good one.
std::string AddressIdentity(const std::string& address);

// "10.0.0.1" of "10.0.0.1:9001"; IPv6 without brackets. The address is a good one.
std::string HostOf(const std::string& address);

// Whether a host, as HostOf() gives it, means every machine itself: 127.0.0.0/8, ::1, localhost.
bool IsLoopbackHost(const std::string& host);

// Whether others can connect to it: 0.0.0.0 and [::] are for listening only. The address is a good one.
bool CanConnect(const std::string& address);

}  // namespace dtrain
