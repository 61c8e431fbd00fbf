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
  // What begins with "=" is a program's path for zsh, and with "%" a job for others.
  if (plain && !word.empty() && word[0] != '=' && word[0] != '%') return word;
  std::string quoted = "'";
  for (const char c : word) {
    // Within quotes fish knows the backslash, and csh the "!", so that each stands outside of them.
    const bool outside = c == '\'' || c == '\\' || c == '!';
    quoted += outside ? std::string("'\\") + c + "'" : std::string(1, c);
  }
  return quoted + "'";
}

std::string ShellLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

}  // namespace dtrain
