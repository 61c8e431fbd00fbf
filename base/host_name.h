// The name of the machine that this process runs on.
#pragma once

#include <string>

namespace dtrain {

std::string HostName();  // "localhost" where it has none

}  // namespace dtrain
