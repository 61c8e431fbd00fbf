#include "base/names.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>

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

std::string ShellQuoted(const std::string& word) {
  constexpr std::string_view kPlain = "_-+.,:/@%=";
  const bool plain = std::all_of(word.begin(), word.end(), [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  // zsh takes a word with "=" in front for a program's path, and other shells take "%" for a job.
  if (plain && !word.empty() && word[0] != '=' && word[0] != '%') return word;
  std::string quoted = "'";
  for (const char c : word) {
    // fish interprets a backslash within quotes, and csh a "!", so these stand outside of them.
    const bool outside = c == '\'' || c == '\\' || c == '!';
    quoted += outside ? std::string("'\\") + c + "'" : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace dtrain
