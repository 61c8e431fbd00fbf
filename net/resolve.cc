#include "net/resolve.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace dtrain::net {

Resolved Resolve(const Address& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (address.is_name ? 0 : AI_NUMERICHOST);
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  Resolved resolved;
  if (code != 0) {
    resolved.error = gai_strerror(code);
    return resolved;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress found;
    std::memcpy(&found.bytes, entry->ai_addr, entry->ai_addrlen);
    found.size = entry->ai_addrlen;
    resolved.addresses.push_back(found);
  }
  std::stable_partition(resolved.addresses.begin(), resolved.addresses.end(),
                        [](const SocketAddress& found) { return found.bytes.ss_family == AF_INET; });
  return resolved;
}

std::string SocketAddressText(const SocketAddress& address) {
  const int family = address.bytes.ss_family;
  if (family != AF_INET && family != AF_INET6) return "";
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int code = getnameinfo(address.get(), address.size, host, sizeof(host), port, sizeof(port),
                               NI_NUMERICHOST | NI_NUMERICSERV);
  if (code != 0) return "";
  return family == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

}  // namespace dtrain::net
