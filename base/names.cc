#include "base/names.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <unistd.h>

namespace dtrain {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

std::set<std::string> OwnNames() {
  std::set<std::string> names = {HostName()};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return names;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN] = {};
    const int family = one->ifa_addr->sa_family;
    const void* number = nullptr;
    if (family == AF_INET) number = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6) number = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    if (number != nullptr && inet_ntop(family, number, text, sizeof text) != nullptr) names.insert(text);
  }
  freeifaddrs(all);
  return names;
}

std::string Plural(int64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace dtrain
