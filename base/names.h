// Names and counts as people read them, and words as a shell does.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace dtrain {

// Returns this machine's host name; "localhost" if it has none.
std::string HostName();

// Returns this machine's host name and the addresses of its interfaces.
std::set<std::string> OwnNames();

// Returns "1 row" or "2 rows". `one` is the singular; `many` is the plural if it is not `one` with an s.
std::string Plural(int64_t count, std::string_view one, std::string_view many = "");

inline bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Quotes `word` for a POSIX shell, whatever it contains except a line break.
std::string ShellQuoted(const std::string& word);

}  // namespace dtrain
