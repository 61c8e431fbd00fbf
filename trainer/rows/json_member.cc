#include "trainer/rows/json_member.h"

#include <nlohmann/json.hpp>

namespace dtrain {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

size_t EndOfString(std::string_view text, size_t quote) {
  size_t at = quote + 1;
  while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// The comma or brace behind the value that begins at `at`.
size_t EndOfValue(std::string_view text, size_t at) {
  for (int depth = 0; depth > 0 || std::string_view(",}").find(text[at]) == std::string_view::npos;) {
    if (text[at] == '"') {
      at = EndOfString(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    ++at;
  }
  return at;
}

// `key` with its quotes; it may have escapes in it.
bool IsName(std::string_view key, std::string_view name) {
  if (key.find('\\') == std::string_view::npos) return key.substr(1, key.size() - 2) == name;
  return nlohmann::json::parse(key).get<std::string>() == name;
}

}  // namespace

std::string_view MemberText(std::string_view object, std::string_view name) {
  std::string_view found;
  for (size_t at = object.find('{') + 1; (at = object.find('"', at)) != std::string_view::npos;) {
    const size_t end = EndOfString(object, at);
    const bool is_name = IsName(object.substr(at, end - at), name);
    const size_t begin = object.find_first_not_of(kBlank, object.find(':', end) + 1);
    at = EndOfValue(object, begin);
    if (is_name) found = object.substr(begin, object.find_last_not_of(kBlank, at - 1) + 1 - begin);
  }
  return found;
}

}  // namespace dtrain
