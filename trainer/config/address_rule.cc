#include "trainer/config/address_rule.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "net/address.h"

namespace dtrain {

std::string AddressProblem(const std::string& text) {
  try {
    net::ParseAddress(text);
    return "";
  } catch (const UserError& error) {
    // It begins with the quoted text, which our messages have said already.
    const std::string message = error.what();
    const std::string said = "\"" + text + "\": ";
    return message.compare(0, said.size(), said) == 0 ? message.substr(said.size()) : message;
  }
}

std::string HostOf(const std::string& address) { return net::ParseAddress(address).host; }

bool IsLoopbackHost(const std::string& host) { return net::IsLoopback(host); }

bool CanConnect(const std::string& address) { return !net::IsWildcard(net::ParseAddress(address).host); }

std::string AddressIdentity(const std::string& address) {
  const net::Address parsed = net::ParseAddress(address);
  if (parsed.port == 0) return "";
  std::string text = net::AddressText(parsed);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace dtrain
