#include "cmd/launch/shell_quote.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace dtrain {

std::string ShellQuoted(const std::string& word) {
  constexpr std::string_view kPlain = "_-+.,:/@%=";
  const bool plain = std::all_of(word.begin(), word.end(), [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ShellLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

}  // namespace dtrain
