#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"

namespace dtrain::net {
namespace {

constexpr size_t kMaxNameBytes = 253;  // RFC 1035, section 2.3.4, as text
constexpr std::string_view kUnix = "unix:";
constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path);

bool IsIpv4(const std::string& host) {
  in_addr unused;
  return inet_pton(AF_INET, host.c_str(), &unused) == 1;
}

// "fe80::1%eth0", with the name of a link, is an IPv6 address too.
bool IsIpv6(const std::string& host) {
  const size_t percent = host.find('%');
  in6_addr unused;
  if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &unused) != 1) return false;
  if (percent == std::string::npos) return true;
  const std::string_view link = std::string_view(host).substr(percent + 1);
  return !link.empty() &&
         std::all_of(link.begin(), link.end(), [](unsigned char c) { return std::isalnum(c); });
}

// Letters, digits, '-', '_' and '.'; names of Docker and Windows may have '_'. A text of digits and dots only
// is a mistyped IPv4 address, and getaddrinfo would read it as another address.
bool IsName(std::string_view host) {
  if (host.empty() || host.size() > kMaxNameBytes) return false;
  if (!std::isalnum(static_cast<unsigned char>(host.front()))) return false;
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  const auto numeric = [](unsigned char c) { return std::isdigit(c) || c == '.'; };
  return std::all_of(host.begin(), host.end(), allowed) && !std::all_of(host.begin(), host.end(), numeric);
}

bool ParsePort(std::string_view text, uint16_t* port) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *port);
  return error == std::errc() && stop == end && !text.empty();
}

Address ParsePath(std::string_view text) {
  Address address;
  address.host = "localhost";
  address.path = std::string(text.substr(kUnix.size()));
  const bool plain = std::all_of(address.path.begin(), address.path.end(),
                                 [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (address.path.empty() || address.path.front() != '/' || !plain || address.path.size() >= kMaxPathBytes) {
    throw UserError("\"{}\": behind unix: stands an absolute path of at most {} characters, without spaces.",
                    text, kMaxPathBytes - 1);
  }
  return address;
}

[[noreturn]] void Refuse(std::string_view text, const char* rule) {
  throw UserError("\"{}\": {}. Write host:port, such as 10.0.0.1:9001, ps-0.example:9001 or [::1]:9001.",
                  text, rule);
}

}  // namespace

Address ParseAddress(std::string_view text) {
  if (text.substr(0, kUnix.size()) == kUnix) return ParsePath(text);
  Address address;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.back() == ']') Refuse(text, "an address needs a port");
  if (!ParsePort(text.substr(colon + 1), &address.port)) Refuse(text, "a port is a number from 0 to 65535");
  std::string_view host = text.substr(0, colon);
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  address.host = std::string(host);
  if (in_brackets) {
    if (!IsIpv6(address.host)) Refuse(text, "in brackets stands a numeric IPv6 address");
    address.is_ipv6 = true;
  } else if (IsIpv6(address.host)) {
    Refuse(text, "an IPv6 address stands in brackets");
  } else if (!IsIpv4(address.host)) {
    if (!IsName(host)) Refuse(text, "the host is neither a name nor a numeric address");
    address.is_name = true;
  }
  return address;
}

std::string AddressText(const Address& address) {
  if (!address.path.empty()) return std::string(kUnix) + address.path;
  return fmt::format(address.is_ipv6 ? "[{}]:{}" : "{}:{}", address.host, address.port);
}

bool IsUnix(std::string_view text) { return text.substr(0, kUnix.size()) == kUnix; }

std::string ZmqEndpoint(const Address& address) {
  return address.path.empty() ? "tcp://" + AddressText(address) : "ipc://" + address.path;
}

bool IsLoopback(std::string_view host) {
  const std::string text(host);
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return strcasecmp(text.c_str(), "localhost") == 0;
}

bool IsWildcard(std::string_view host) {
  const std::string text(host);
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

}  // namespace dtrain::net
