// The names of the machine that this process runs on.
#pragma once

#include <set>
#include <string>

namespace dtrain {

std::string HostName();  // "localhost" where it has none

// Its host name and the addresses of its interfaces.
std::set<std::string> OwnNames();

}  // namespace dtrain
