// Names and counts as people read them: of this machine, and of things that are counted.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace dtrain {

// This machine's name; "localhost" where it has none.
std::string HostName();

// This machine's host name and the addresses of its interfaces.
std::set<std::string> OwnNames();

// "1 row", "2 rows". `one` is the word for one; `many` the word for any other number where an s behind `one`
// does not make it.
std::string Plural(int64_t count, std::string_view one, std::string_view many = "");

}  // namespace dtrain
